"""The order of the packages: who may import whom, and what no file may do."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

import darkroom
from darkroom.manifest.formats import list_formats
from darkroom.runtime import by_name

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "src/darkroom": "darkroom",
    "components": "darkroom.components",
    "pipelines": "darkroom.pipelines",
}


class Layer(NamedTuple):
    """A package, the packages that it may import, and its purpose."""

    name: str
    may_import: str
    purpose: str


# From bottom to top. Imports inside functions and for type checkers count, too.
LAYERS = [
    Layer("errors", "", "the errors, by who has to act; exit codes"),
    Layer("version", "", "the version, and the folder of the package"),
    Layer("withdrawn", "", "what this release no longer has, and what to do instead"),
    Layer(
        "runtime",
        "errors, version, withdrawn",
        "progress, logs, processes, their cores and memory, threads that keep an order, text, "
        "tables and pages for people",
    ),
    Layer(
        "storage",
        "errors, runtime",
        "all access to the user's paths, local and remote; locks; Parquet and DuckDB",
    ),
    Layer(
        "dataset",
        "errors, version, runtime, storage",
        "the files of a dataset: names, forms, keys, splits, labels, columns",
    ),
    Layer(
        "decisions",
        "errors, runtime, storage, dataset",
        "what people decided about images, for the next conversion",
    ),
    Layer(
        "targets",
        "errors, runtime, storage, dataset",
        "what an image is labelled with: a package for each kind",
    ),
    Layer(
        "options",
        "errors, withdrawn, runtime, storage, dataset, targets",
        "every option, as dataclasses that check themselves",
    ),
    Layer(
        "images",
        "errors, version, runtime, storage, dataset, targets, options",
        "from the bytes of an image file to the bytes that a record stores",
    ),
    Layer(
        "features",
        "errors, version, runtime, storage, dataset, targets, options, images",
        "features of images: networks, the cache, and the table beside an index",
    ),
    Layer(
        "proof",
        "errors, runtime, storage, dataset, targets, options",
        "is each file of a dataset there, whole, and what the index says of it",
    ),
    Layer(
        "manifest",
        "errors, version, runtime, storage, dataset, decisions, targets, options, images",
        "from any list of images to ordered rows",
    ),
    Layer(
        "sidecars",
        "errors, runtime, storage, dataset, targets, options",
        "files by which readers of other frameworks find the records",
    ),
    Layer(
        "conversion",
        "errors, version, runtime, storage, dataset, targets, options, images, features, "
        "manifest, sidecars",
        "from a manifest to a committed dataset",
    ),
    Layer(
        "validation",
        "errors, runtime, storage, dataset, targets, options, images, features",
        "checks a dataset by its index; the report, the gate",
    ),
    Layer(
        "audit",
        "errors, runtime, storage, dataset, targets, options, images, features",
        "looks into a finished dataset: duplicates, a contact sheet",
    ),
    Layer(
        "data",
        "errors, runtime, storage, dataset, targets, options, proof",
        "opens what a user names as data: datasets, TFX Examples or images",
    ),
    Layer(
        "reader",
        "errors, runtime, storage, dataset, targets, options, images, data",
        "batches of records for NumPy and PyTorch, without TensorFlow",
    ),
    Layer(
        "input",
        "errors, runtime, storage, dataset, targets, options, images, data, reader",
        "tf.data batches from datasets, from lists of images, and from CSV tables of numbers",
    ),
    Layer(
        "profiling",
        "errors, runtime, storage, options, input",
        "what input costs, and what limits it",
    ),
    Layer(
        "evaluation",
        "errors, version, runtime, storage, dataset, targets, options, images, data, input",
        "how good an exported model is: numbers, a page, a model card; predictions",
    ),
    Layer(
        "training",
        "errors, runtime, storage, dataset, targets, options, images, features, data, input, "
        "profiling, evaluation",
        "`run_fn`, checkpoints, export",
    ),
    Layer(
        "steps",
        "errors, runtime, storage, dataset, targets, options, conversion, validation, audit, "
        "proof, profiling, evaluation, training",
        "the steps of a pipeline, each told once: what it takes, makes and does",
    ),
    Layer(
        "kfp",
        "errors, version, runtime, storage, dataset, options, steps",
        "components of Kubeflow Pipelines without TFX, made of steps",
    ),
    Layer(
        "components",
        "errors, runtime, storage, dataset, targets, options, images, manifest, conversion, "
        "validation, evaluation, steps, kfp",
        "the TFX components",
    ),
    Layer(
        "pipelines",
        "errors, version, runtime, storage, dataset, targets, options, images, manifest, "
        "conversion, validation, input, evaluation, training, components",
        "one pipeline, and the ways to run it",
    ),
    Layer(
        "cli",
        "errors, version, withdrawn, runtime, storage, decisions, options, conversion, "
        "validation, audit, proof, input, profiling, evaluation, training, steps, pipelines",
        "the command line",
    ),
    Layer(
        "darkroom",
        "errors, version, runtime, conversion, validation, audit, proof, input, evaluation, "
        "training, components",
        "the public names, loaded when they are first used",
    ),
]


class Part(NamedTuple):
    """Some packages that one person can own, and the parts that they may import."""

    name: str
    packages: str
    may_import: str
    purpose: str
    level: str


# Between them passes a dataset, and what `runtime/by_name.py` names. docs/architecture.md shows it.
PARTS = [
    Part(
        "core",
        "errors, version, withdrawn, runtime, storage, dataset, targets, options, images, "
        "features, proof",
        "",
        "what a dataset is, its pixels, its proof",
        "stable; kinds with boxes, and features, are maintained",
    ),
    Part(
        "make",
        "decisions, manifest, sidecars, conversion",
        "core",
        "from a list to a dataset",
        "stable; annotations of boxes, updates, decisions, sidecars and Beam are maintained",
    ),
    Part(
        "look",
        "validation, audit",
        "core",
        "what is wrong with a dataset",
        "`validate` is stable; all else is maintained",
    ),
    Part(
        "read",
        "data, reader, input, profiling",
        "core",
        "batches",
        "`load` is stable; all else is maintained",
    ),
    Part("learn", "evaluation, training", "core, read", "models", "maintained"),
    Part(
        "top",
        "steps, kfp, components, pipelines, cli, darkroom",
        "core, make, look, read, learn",
        "steps, and commands, tasks, components and pipelines of them; the public names",
        "the components for TFX are stable; all else is maintained",
    ),
]
# The packages that may load TensorFlow; the others take TFDV only where statistics are computed.
NEED_TENSORFLOW = ("features", "input", "profiling", "evaluation", "training")
NEED_TFX = ("components", "pipelines")
NEED_KFP = ("darkroom.kfp.components", "darkroom.kfp.pipelines", "darkroom.kfp.yaml_files")
TENSORFLOW = ("keras", "tensorflow", "tensorflow_data_validation", "tensorflow_metadata", "tfx_bsl")
# The part of a module's name that is chosen, by a user or by a path: equal names there are meant.
CHOSEN = "|".join(
    (
        r"(?<=darkroom\.cli\.commands\.)\w+",
        r"(?<=darkroom\.components\.)\w+(?=\.executor)",
        r"(?<=darkroom\.pipelines\.submission\.)(kubeflow|vertex)",
        r"(?<=darkroom\.sidecars\.)\w+",
        r"(?<=darkroom\.steps\.)\w+",
        r"(?<=darkroom\.storage)\.(local|remote_files|remote)",
        r"(?<=darkroom\.targets\.)\w+(?=\.)",
    )
)
# Where a program, a command, a step and a process begin; by what a form of annotations is found,
# and what reads a label map; and two functions that users have: of data by their names, and of
# data that are open.
SHARED_NAMES = ("main", "run", "serve", "FORMAT", "read_names", "train")
STATISTICS = ("darkroom.validation.anomalies", "darkroom.validation.statistics")


class Import(NamedTuple):
    """An import of one name: the module that it is in, and where the import is."""

    module: str
    name: str
    line: int


@cache
def list_modules() -> dict[str, Path]:
    """Maps the names of all modules to their files, without importing any."""
    modules = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            modules[".".join((package, *parts)).removesuffix(".__init__")] = path
    return modules


@cache
def parse(module: str) -> ast.Module:
    return ast.parse(list_modules()[module].read_text("utf-8"))


@cache
def find_imports(module: str) -> list[Import]:
    """Returns what a module imports, anywhere in it."""
    return list(walk_imports(module))


def walk_imports(module: str) -> Iterator[Import]:
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, "", node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports relatively"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                is_module = full in list_modules()
                yield Import(
                    full if is_module else str(node.module),
                    "" if is_module else alias.name,
                    node.lineno,
                )


def find_by_name(module: str) -> Iterator[str]:
    """Yields the modules that a module finds by name: by `PLACES`, or by a text that names them.

    As `darkroom.targets.{name}.kind`, which names a module of each kind.
    """
    if module == by_name.__name__:
        return
    for node in ast.walk(parse(module)):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(match_text(part, module) for part in parts)
        place = by_name.PLACES.get(text, text).partition(":")[0]
        if place.startswith("darkroom."):
            yield from (name for name in list_modules() if re.fullmatch(place, name))


def match_text(part: ast.AST, module: str) -> str:
    """Returns the pattern of a part of a text in a module; empty for other code."""
    if isinstance(part, ast.FormattedValue):
        return module if ast.unparse(part.value) == "__name__" else r"\w+"
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""


def find_layer(module: str) -> str:
    """Returns the layer of a module of ours: the first part of its name below `darkroom`."""
    return module.split(".")[1] if "." in module else "darkroom"


def find_part(module: str) -> str:
    """Returns the name of the part that a module is in."""
    [name] = [part.name for part in PARTS if find_layer(module) in part.packages.split(", ")]
    return name


@cache
def find_defined_names(module: str) -> set[str]:
    """Returns the names that a module gives a value itself, rather than importing them."""
    tree = parse(module)
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not is_load(n)}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return stored | {n.name for n in ast.walk(tree) if isinstance(n, kinds)}


def find_homonyms() -> dict[str, list[str]]:
    """Returns the public names that several modules define, and these modules."""
    homes: dict[str, dict[str, str]] = defaultdict(dict)
    for module in list_modules():
        for name in walk_public_names(module):
            homes[name].setdefault(re.sub(CHOSEN, "", module), module)
    return {
        name: [*modules.values()]
        for name, modules in homes.items()
        if len(modules) > 1 and name not in SHARED_NAMES
    }


def walk_public_names(module: str) -> Iterator[str]:
    """Yields the functions, classes and constants of a module; not what replaces an import."""
    for node in parse(module).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            stored = (each for target in targets for each in ast.walk(target))
            names = [each.id for each in stored if isinstance(each, ast.Name)]
        else:
            names = []
        yield from (name for name in names if not name.startswith("_"))


def is_load(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def test_every_package_is_in_the_table():
    layers = [layer.name for layer in LAYERS]
    assert len(set(layers)) == len(layers)
    assert set(map(find_layer, list_modules())) == set(layers)


def test_the_table_has_an_order():
    below: set[str] = set()
    for layer in LAYERS:
        assert set(filter(None, layer.may_import.split(", "))) <= below, layer.name
        below.add(layer.name)


def test_no_import_is_against_the_order():
    allowed = {layer.name: {layer.name, *layer.may_import.split(", ")} for layer in LAYERS}
    wrong = [
        f"{module}:{each.line} imports {each.module}"
        for module in list_modules()
        for each in find_imports(module)
        if each.module in list_modules()
        and find_layer(each.module) not in allowed[find_layer(module)]
    ]
    assert wrong == []


def test_each_package_is_in_one_part_and_imports_no_other_part_than_the_table_says():
    packages = [name for part in PARTS for name in part.packages.split(", ")]
    assert sorted(packages) == sorted(layer.name for layer in LAYERS)
    allowed = {part.name: {part.name, *part.may_import.split(", ")} for part in PARTS}
    wrong = [
        f"{layer.name} imports {name}"
        for layer in LAYERS
        for name in filter(None, layer.may_import.split(", "))
        if find_part(f"darkroom.{name}") not in allowed[find_part(f"darkroom.{layer.name}")]
    ]
    assert wrong == []


def test_what_another_part_uses_has_no_underscore():
    wrong = [
        f"{module}:{each.line} imports {each.module}:{each.name}"
        for module in list_modules()
        for each in find_imports(module)
        if each.module in list_modules() and find_part(each.module) != find_part(module)
        if re.search(r"(^|\.)_(?!_)", f"{each.module}.{each.name}")
    ]
    assert wrong == []


def test_each_package_says_first_which_part_it_is_of():
    wrong = [
        f"{module}: {said}"
        for module, path in list_modules().items()
        if module.count(".") == 1 and path.name == "__init__.py"
        for said in str(ast.get_docstring(parse(module))).splitlines()[:1]
        if not said.endswith(f" (part: {find_part(module)}).")
    ]
    assert wrong == []


def test_what_is_found_by_name_is_there():
    forms = [(form.of_file, form.of_folder, form.of_names) for form in list_formats()]
    for place in filter(None, chain(by_name.PLACES.values(), *forms)):
        module, _, name = place.partition(":")
        assert name in find_defined_names(module)
        with suppress(ModuleNotFoundError):  # of an extra that is not installed
            assert callable(by_name.load_place(place)), place


def test_no_files_import_each_other_in_a_circle():
    graph = defaultdict(set)
    for module in list_modules():
        for each in find_imports(module):
            if each.module in list_modules() and each.module != module:
                graph[module].add(each.module)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"These import each other: {error.args[1]}")


def test_names_are_imported_from_where_they_are_defined():
    """Only the `__init__` of a package passes on names of other modules of ours."""
    wrong = []
    for module in list_modules():
        for each in find_imports(module):
            path = list_modules().get(each.module)
            if not path or path.name == "__init__.py" or not each.name:
                continue
            passed_on = {
                other.name
                for other in find_imports(each.module)
                if find_top(other.module) == "darkroom"
            }
            if each.name in passed_on - find_defined_names(each.module):
                wrong.append(f"{module}:{each.line} imports {each.name} from {each.module}")
    assert wrong == []


def test_benchmarks_import_what_is_there():
    """No other test runs them."""
    wrong = []
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.ImportFrom) or find_top(node.module or "") != "darkroom":
                continue
            module = f"{node.module}"
            if (found := list_modules().get(module)) and found.name == "__init__.py":
                continue
            names = find_defined_names(module) if found else set()
            wrong += [f"{path}: {each.name}" for each in node.names if each.name not in names]
    assert wrong == []


def test_a_public_name_is_defined_in_one_module():
    """Whoever searches for a name finds the thing."""
    assert find_homonyms() == {}


def test_tensorflow_is_loaded_by_few_packages():
    wrong = [
        f"{module}:{each.line} imports {each.module}"
        for module in list_modules()
        for each in find_imports(module)
        if find_top(each.module) in TENSORFLOW
        and find_layer(module) not in NEED_TENSORFLOW + NEED_TFX
        and module not in STATISTICS
        and not (find_layer(module) == "targets" and module.endswith((".learning", ".head")))
    ]
    assert wrong == []


def find_top(module: str) -> str:
    return module.split(".")[0]


def test_tfx_is_loaded_by_components_and_pipelines_alone():
    wrong = [
        f"{module}:{each.line} imports {each.module}"
        for module in list_modules()
        for each in find_imports(module)
        if find_top(each.module) in ("tfx", "ml_metadata") and find_layer(module) not in NEED_TFX
    ]
    assert wrong == []


def test_kfp_is_loaded_by_what_makes_components_and_not_by_what_runs_in_a_container():
    wrong = [
        f"{module}:{each.line} imports {each.module}"
        for module in list_modules()
        for each in find_imports(module)
        if find_top(each.module) in ("kfp", "kfp_server_api")
        and module not in NEED_KFP
        and find_layer(module) not in NEED_TFX
    ]
    assert wrong == []


def test_no_folder_and_its_parent_import_each_other():
    """The folders of the packages; names that an `__init__` passes on do not count."""
    arrows = set()
    for module, path in list_modules().items():
        if path.name != "__init__.py":
            folder = module.rpartition(".")[0]
            arrows |= {(folder, find_folder(each.module)) for each in find_imports(module)}
    circles = {
        folder
        for folder, parent in arrows
        if folder.rpartition(".")[0] == parent != "darkroom" and (parent, folder) in arrows
    }
    assert circles == set()


def test_shards_are_below_the_output_and_beam_is_above_it():
    order = [f"darkroom.conversion.{name}" for name in ("shards", "output", "beam")]
    wrong = [
        f"{module}:{each.line} imports {each.module}"
        for place, folder in enumerate(order)
        for module in list_modules()
        for each in find_imports(module)
        if find_folder(module) == folder and find_folder(each.module) in order[place + 1 :]
    ]
    assert wrong == []


def find_folder(module: str) -> str:
    """Returns the package that a module is in; a package is in itself."""
    path = list_modules().get(module)
    return module if path and path.name == "__init__.py" else module.rpartition(".")[0]


def test_no_package_has_the_name_of_a_public_function():
    """Importing `darkroom.convert.x` would replace the function `darkroom.convert`."""
    modules = {path.name for path in (ROOT / "src/darkroom").iterdir()}
    names = {*darkroom.__all__, "input_fn", "run_fn"}
    assert {name for name in names if {name, f"{name}.py"} & modules} == set()


def test_the_architecture_page_shows_the_parts():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    parts = ["| part | what it is for | promised to users | support |", "| --- | --- | --- | --- |"]
    parts += [
        f"| **{each.name}** | {each.purpose} | {list_promises(each.name)} | {each.level} |"
        for each in PARTS
    ]
    assert "\n".join(parts) in page


def list_promises(part: str) -> str:
    """Returns a part's functions in `darkroom`, and its packages that have an `__all__`."""
    functions = [
        name
        for name, module in sorted(darkroom._HOMES.items())
        if name.islower() and find_part(module) == part
    ]
    promising = [name for name in list_modules() if "__all__" in find_defined_names(name)]
    packages = {find_layer(name) for name in promising if find_part(name) == part}
    return ", ".join(f"`{name}`" for name in [*functions, *sorted(packages)])
