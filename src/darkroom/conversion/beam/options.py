"""Beam's options by name, checked before anything starts."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from darkroom.errors import UsageError
from darkroom.options.runners import JOB_SERVER_RUNNERS
from darkroom.runtime.text import find_similar, suggest

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

# From this similarity on, a name is a mistyped option of Beam, not one of a job server.
_SAME_OPTION = 0.85


def build_options(runner: str, options: Mapping[str, Any]) -> PipelineOptions:
    """Returns Beam's options for a runner; never reads the process's own arguments.

    Args:
        runner: Beam's name of the runner.
        options: Values by name, as in `num_workers`, of Beam's types. A list gives an option
            several times, a mapping becomes JSON, None leaves it out.

    Raises:
        UsageError: Beam does not know an option, or rejects its value.
    """
    from darkroom.runtime.plain_beam import beam

    if secret := next((name for name in options if name.startswith("s3_")), None):
        raise UsageError(
            f"Beam's option {secret!r} is not used: options are stored and shown with jobs.",
            "Set credentials and endpoint of s3:// in the environment, for example AWS_PROFILE.",
        )
    flags = [f"--runner={runner}"]
    if options:
        actions = _read_actions()
        for name, value in options.items():
            flags += _format_option(name, value, actions, may_be_more=runner in JOB_SERVER_RUNNERS)
    with _logging_kept():
        built = beam.options.pipeline_options.PipelineOptions(flags)
    complaint = io.StringIO()
    try:
        # Beam parses options when they are first read, and a wrong one ends the process then.
        with contextlib.redirect_stderr(complaint):
            built.get_all_options()
    except SystemExit as error:
        if not complaint.getvalue():  # not from the parser: a signal came while it was parsing
            raise
        problem = complaint.getvalue().strip().rpartition("error: ")[2]
        raise UsageError(
            f"Beam rejects an option: {problem}.", "See Beam's documentation."
        ) from error
    return built


@contextlib.contextmanager
def _logging_kept() -> Iterator[None]:
    """Keeps Beam's options from sending the log of this process to the terminal.

    They do so where nothing receives it. Then all that a job server says would be there, too.
    """
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _read_actions() -> list[argparse.Action]:
    from darkroom.runtime.plain_beam import beam

    parsers: list[argparse.ArgumentParser] = []
    with _logging_kept():
        options = beam.options.pipeline_options.PipelineOptions([])
        options.get_all_options(add_extra_args_fn=parsers.append)
    return list(parsers[0]._actions)


def _format_option(
    name: str, value: Any, actions: Sequence[argparse.Action], *, may_be_more: bool
) -> list[str]:
    """Returns the flags that give an option a value, by any of its names.

    With `may_be_more`, a job server may know options that Beam's Python does not.
    """
    # An option may have two flags, one that switches it on and one off.
    found = [a for a in actions if a.dest == name or f"--{name}" in a.option_strings]
    if not found:
        known = {n for a in actions for n in (a.dest, *(o.lstrip("-") for o in a.option_strings))}
        if may_be_more and not find_similar(name, known, _SAME_OPTION):
            return [] if value is None else [f"--{name}={value}"]
        hint = suggest(name, known, "See Beam's documentation.")
        raise UsageError(f"Beam has no option {name!r}.", hint)
    exact = next((a for a in found if f"--{name}" in a.option_strings), found[0])
    if value is None:
        return []
    if isinstance(value, bool) and exact.nargs == 0:
        opposite = (a for a in actions if a.dest == exact.dest and a.const is not exact.const)
        action = exact if value else next(opposite, None)
        return [] if action is None else [action.option_strings[0]]
    flag = f"--{name}" if f"--{name}" in exact.option_strings else exact.option_strings[0]
    values = value if isinstance(value, list | tuple) else [value]
    return [f"{flag}={json.dumps(v) if isinstance(v, dict) else v}" for v in values]
