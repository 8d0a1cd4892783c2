"""The text of a compiled file, as the readers of YAML and JSON of each service need it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from darkroom.options.targets import VERTEX

_LIKE_NUMBER = re.compile(r"[-+]?\.?\d|~")
# A line of JSON that ends with a number like 1e-05.
_EXPONENT = re.compile(r"(?m)^( *(?:\"\w+\": )?-?\d+)(e[+-]\d+,?)$")


def format_documents(documents: Sequence[Mapping[str, Any]], target: str) -> str:
    """Returns the text of a compiled file: YAML for Kubeflow, JSON for Vertex.

    Args:
        documents: As `make_documents` returns them.
        target: `kubeflow` or `vertex`.
    """
    if target == VERTEX:
        text = json.dumps(documents[0], indent=1, sort_keys=True) + "\n"
        # Google's client reads the file as YAML, where 1e-05 is text and 1.0e-05 is a number.
        return _EXPONENT.sub(r"\1.0\2", text)
    import yaml  # comes with the extra `tfx`

    spec = documents[0]
    return (
        "# PIPELINE DEFINITION\n"
        f"# Name: {spec['pipelineInfo']['name']}\n"
        f"# Compiled with {spec['sdkVersion']}.\n"
        f"{yaml.dump_all(documents, Dumper=_make_dumper(), sort_keys=True, allow_unicode=True)}"
    )


def _make_dumper() -> Any:
    """Returns a class that quotes every text that a version of YAML may take for a number.

    `1e-3` is text in YAML 1.1 and a number in 1.2; Kubeflow then refuses each run of the file.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            """Writes values that many tasks share at each of them, where people look for them."""
            return True

    def write(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
        # The writer quotes words like `yes` itself.
        style = "'" if _LIKE_NUMBER.match(text) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)

    Dumper.add_representer(str, write)
    return Dumper
