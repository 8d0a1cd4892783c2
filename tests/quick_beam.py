"""Lets Beam remember what it works out again for each pipeline: a third of a small conversion."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary


def remember_views() -> None:
    """Makes each view of a pipeline's options once: it has a parser of its own.

    All views of the same options share their values.
    """
    from apache_beam.options.pipeline_options import PipelineOptions

    inner, known = PipelineOptions.view_as, WeakKeyDictionary[Any, dict[type, Any]]()

    def view_as(options: Any, kind: type) -> Any:
        views = known.setdefault(options, {})
        if kind not in views:
            views[kind] = inner(options, kind)
        return views[kind]

    PipelineOptions.view_as = view_as


def remember_states() -> None:
    """Looks for states and timers once in each class of functions on elements.

    What wraps a function of the user's is looked at once itself.
    """
    from apache_beam.transforms import userstate
    from apache_beam.transforms.core import CallableWrapperDoFn

    inner, known = userstate.get_dofn_specs, WeakKeyDictionary[Any, Any]()

    def get_dofn_specs(dofn: Any) -> Any:
        key = dofn if isinstance(dofn, CallableWrapperDoFn) else type(dofn)
        if key not in known:
            known[key] = inner(dofn)
        return known[key]

    userstate.get_dofn_specs = get_dofn_specs
