"""Each part is imported alone: nothing brings a part with it that the table does not allow."""

from __future__ import annotations

import json

import pytest

from .test_layers import PARTS, find_part, list_modules

# It needs TensorFlow, as most of `learn` does. A fork of a Python that has it takes a second.
pytestmark = pytest.mark.tensorflow
# `import darkroom` itself loads the method of DataFrames, whichever part follows.
_IMPORT = """
import json, sys
from importlib import import_module
for name in [name for name in sys.modules if name.partition(".")[0] == "darkroom"]:
    del sys.modules[name]
import darkroom
before, imported = set(sys.modules), 0
for name in json.loads(sys.argv[1]):
    try:
        import_module(name)
        imported += 1
    except ModuleNotFoundError as error:
        assert error.name.partition(".")[0] == "torch", error
after = [name for name in set(sys.modules) - before if name.partition(".")[0] == "darkroom"]
print(json.dumps([imported, after]))
"""


@pytest.mark.parametrize("part", PARTS[:-1], ids=lambda part: part.name)
def test_a_part_is_imported_without_the_others(part, warm_python, tmp_path):
    (tmp_path / "alone.py").write_text(_IMPORT)
    modules = [name for name in list_modules() if find_part(name) == part.name]
    done = warm_python.run(tmp_path / "alone.py", json.dumps(modules))
    assert done.returncode == 0, done.stderr
    imported, loaded = json.loads(done.stdout)
    assert imported > 0.9 * len(modules)
    allowed = {part.name, *part.may_import.split(", ")}
    assert sorted(name for name in loaded if find_part(name) not in allowed) == []
