"""The commands that write, and what there is before them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.attacks.places import Place
from tests.kfp.tasks import Cluster

# The arguments of a command in a place, from the folder of the sources.
Arguments = Callable[[Path, Place], Sequence[object]]

_SHARDS = ("--num-shards", "2", "--max-rejects", "0.5")


def _convert(source: str, *more: str) -> Arguments:
    def make(folder: Path, place: Place) -> Sequence[object]:
        return ("convert", folder / source, "--output-dir", place.output, *_SHARDS, *more)

    return make


def _job(source: str, **options: object) -> Arguments:
    given = json.dumps({"num_shards": 2, "max_rejects": 0.5, **options})
    return lambda folder, place: (folder / source, place.output, given)


def _on_dataset(command: str, *more: str) -> Arguments:
    """Returns a command that has its output beside the dataset; `{}` in an argument is it."""

    def make(folder: Path, place: Place) -> Sequence[object]:
        rest = (each.format(place.output) for each in more)
        return (command, f"{place.root}/records", *rest)

    return make


def _records(folder: Path, place: Place) -> Sequence[object]:
    where = ("--output-dir", f"{place.root}/records")
    return ("convert", folder / "list.csv", *where, *_SHARDS)


def _compile(*more: str) -> Arguments:
    config = Path(__file__).parents[2] / "docs/examples/kubeflow.toml"
    argv = ("compile", "--target", "kubeflow", "--config", config)
    return lambda folder, place: (*argv, "-o", f"{place.output}.yaml", *more)


def _task(folder: Path, place: Place) -> Sequence[object]:
    """Returns the arguments of a task in a container, whose mounts are the place."""
    cluster = Cluster(Path(place.root).parents[1], None, None)
    values = {"data": str(folder / "list.csv"), "num_shards": 2, "max_rejects": 0.5}
    given, mounts = cluster.make_input("convert_images", {}, values)
    assert str(mounts) == place.root
    return ("convert_images", "--executor_input", json.dumps(given))


@dataclass(frozen=True)
class Writer:
    """A command that writes.

    Attributes:
        argv: Its arguments.
        before: The arguments of the commands that make what there is before.
        program: The function that gets the arguments.
        is_dataset: Whether its output is a dataset.
        stays: Whether there is a dataset at any moment, where folders can be exchanged.
        code: The exit code of an undisturbed run.
        again: The arguments of the command line after a fault, where they are others.
        mine: Files that somebody has in the output.
    """

    argv: Arguments
    before: tuple[Arguments, ...] = ()
    program: str = "darkroom.cli.main"
    is_dataset: bool = True
    stays: bool = False
    code: int = 0
    again: Arguments | None = None
    mine: tuple[str, ...] = ()


_OLD = (_convert("list.csv", "--seed", "7"),)
_REPORT = Writer(_records, (_records,), is_dataset=False)
_SIDECARS = ("--for", "tfds,huggingface,dali,croissant")

WRITERS: dict[str, Writer] = {
    "convert": Writer(_convert("list.csv")),
    "convert --overwrite": Writer(_convert("list.csv", "--overwrite"), _OLD, stays=True),
    # A file of somebody else in the folder forbids to exchange it.
    "convert --overwrite, beside files": Writer(
        _convert("list.csv", "--overwrite"), _OLD, mine=("out/README", "out/images/1.jpg")
    ),
    "convert --update": Writer(
        _convert("list.csv", "--update"), (_convert("shorter.csv", "--update"),), stays=True
    ),
    "convert, refused": Writer(
        lambda folder, place: ("convert", folder / "list.csv", "--output-dir", place.output),
        code=1,
    ),
    "embed": Writer(
        lambda folder, place: ("embed", place.output),
        (_convert("list.csv"),),
        program="embed_with_means",
        stays=True,
    ),
    "describe": Writer(
        lambda folder, place: ("describe", place.output, *_SIDECARS),
        (_convert("list.csv"),),
        stays=True,
    ),
    "a job": Writer(_job("list.csv"), program="leave_job", again=_convert("list.csv")),
    "a job that replaces": Writer(
        *(_job("list.csv", overwrite=True), _OLD, "leave_job"),
        stays=True,
        again=_convert("list.csv", "--overwrite"),
    ),
    "ImageToTFRecord": Writer(
        lambda folder, place: (folder / "list.csv", place.root), program="write_artifacts"
    ),
    "convert_images": Writer(_task, program="darkroom.kfp.task.main"),
    "validate": replace(
        _REPORT,
        argv=_on_dataset(
            "validate",
            "--report",
            "{}",
            "--policy",
            "leakage=warn",
            "--policy",
            "group_leakage=warn",
        ),
    ),
    "inspect": replace(_REPORT, argv=_on_dataset("inspect", "--output-dir", "{}")),
    "duplicates": replace(
        _REPORT, argv=_on_dataset("duplicates", "--output", "{}.parquet", "--overwrite")
    ),
    "describe --output": replace(
        _REPORT, argv=_on_dataset("describe", "--for", "dali", "--output", "{}")
    ),
    "compile": Writer(_compile("--set", "epochs=7"), (_compile(),), is_dataset=False),
}
