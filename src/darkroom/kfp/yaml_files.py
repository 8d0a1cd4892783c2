"""The components as YAML files, for `load_component_from_file` and `load_component_from_url`.

    python -m darkroom.kfp.yaml_files components --image registry.example.com/darkroom:0.3.0.dev0

The files of this package name the image that `make image` builds. KFP cannot change the image of a
component that it has loaded, so this writes them for another one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from kfp import compiler

from darkroom.errors import DarkroomError, convert_error
from darkroom.kfp.components import DEFAULT_IMAGE, make_quietly, warn_of_moving_images
from darkroom.steps.known import STEPS
from darkroom.storage import convert_os_error, ledger

FOLDER = Path(__file__).parent / "yaml"
# The oldest version that reads the files. The one that wrote them makes no difference.
_SDK_VERSION = "kfp-2.5.0"


def encode_component(name: str, image: str) -> str:
    """Returns the file of a component, the same with every version of kfp.

    Args:
        name: The name of the component.
        image: The container image.

    Raises:
        UsageError: There is no such component, or the name of the image is empty.
    """
    with tempfile.TemporaryDirectory(prefix="darkroom-") as folder:
        path = Path(folder, f"{name}.yaml")
        compiler.Compiler().compile(make_quietly(name, image), str(path))
        spec = yaml.safe_load(path.read_text("utf-8"))
    spec["sdkVersion"] = _SDK_VERSION
    _remove_copies(spec, spec["pipelineInfo"]["name"])
    text: str = yaml.dump(spec, Dumper=_Dumper, sort_keys=True, width=100, allow_unicode=True)
    return f"# {STEPS[name].help}\n# Written by `make reference`: change the code.\n{text}"


class _Dumper(yaml.SafeDumper):
    """Quotes every text that is a value: readers of YAML 1.1 and 1.2 differ about some."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> Any:
    is_plain = text.replace("_", "").replace("-", "").isalpha()
    style = None if is_plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def _remove_copies(spec: dict[str, Any], name: str) -> None:
    """Removes the additions of kfp 2.5: each output of metrics again, under a longer name."""
    root = spec["root"]
    for part in (root["dag"].get("outputs", {}), root.get("outputDefinitions", {})):
        artifacts = part.get("artifacts", {})
        for each in [key for key in artifacts if key.removeprefix(f"{name}-") in artifacts]:
            if each.startswith(f"{name}-"):
                del artifacts[each]


def write_components(folder: str, image: str) -> None:
    """Writes the files of all components.

    Raises:
        OutputError: The folder has a file of such a name that darkroom did not write.
        UsageError: The name of the image is empty.
        OSError: The folder cannot be written.
    """
    files = {f"{name}.yaml": encode_component(name, image).encode() for name in STEPS}
    warn_of_moving_images([image])
    ledger.write_files(folder, files)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m darkroom.kfp.yaml_files")
    parser.add_argument("folder", help="folder for the files; made if it does not exist")
    parser.add_argument("--image", default=DEFAULT_IMAGE, help="container image of the components")
    arguments = parser.parse_args(argv)
    try:
        write_components(arguments.folder, arguments.image)
    except (DarkroomError, OSError) as error:
        found = convert_error(convert_os_error(error) if isinstance(error, OSError) else error)
        print(f"darkroom: {found.message}\n{found.hint}".strip(), file=sys.stderr)
        return found.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
