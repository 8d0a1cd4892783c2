"""Whether every object of annotations is in the records, or counted; and in other tools' COCO.

    python benchmarks/annotations.py [SET ...] [--photographs DIR] [--box-orientation WAY]
        [--python PYTHON]

A set is a file or folder of annotations with its images, as `darkroom convert` takes it. Without
any, sets are made from a seed: the same objects on photographs in eight forms, of which some are
crowds, difficult, turned, twice, at edges, outside, or without an area; and photographs that EXIF
turns. They are those of DIR, or drawn as in benchmarks/input.py.

Objects of a list are read by a few lines for each form (`annotation_sets/plain.py`), without
darkroom's code, and those of records by TensorFlow. `lost silently` is how many are neither
written, rejected nor merged, by the counts or by comparing them one by one; `changed` how many of
the records equal none of the list: class, flags, and corners within 0.01 pixels, inside the image.
`AP` is pycocotools' average precision of the objects of records, with a score of 1, against those
of the list that are not rejected or merged, inside the image.

PYTHON is an interpreter with pycocotools, datumaro, supervision, label-studio-sdk and panlabel, or
some of them. These write the same sets as COCO. The second table has how many objects there are
then, and how many of them equal none of the list, where all that is outside an image is cut.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from annotation_sets.listed import AnnotationSet, Things
from annotation_sets.making import (
    FORMS,
    add_lost_object,
    keep_usual,
    make_photos,
    write_forms,
    write_turned,
)
from annotation_sets.others import TOOLS
from annotation_sets.places import count_changed, cut, place_things
from annotation_sets.plain import Thing, list_coco, read_coco
from annotation_sets.records import read_records
from input_rows.photographs import make_photographs

import darkroom
from darkroom.errors import DataError

_OTHERS = Path(__file__).parent / "annotation_sets" / "others.py"
_NUM_PHOTOGRAPHS = 874
_HEADER = [
    *("set", "images", "objects", "written", "rejected", "merged"),
    *("lost silently", "changed", "AP"),
]


class Measured(NamedTuple):
    """The cells of a row of the first table after those of the list, and objects in records."""

    cells: tuple[object, ...]
    things: Things


def measure(found: AnnotationSet, python: str | None, scratch: Path) -> Measured:
    """Converts a set, and compares the records with its list."""
    records = scratch / "records"
    shutil.rmtree(records, ignore_errors=True)
    said = {"box_orientation": found.orientation} if found.orientation else {}
    try:
        result = darkroom.convert(found.path, records, max_rejects=1.0, **said)
    except DataError as error:
        return Measured((f"refused: {str(error).splitlines()[0]}",), {})
    counts = result.objects
    rejects = records / "rejects.jsonl"
    lines = rejects.read_text().splitlines() if rejects.exists() else []
    kept = found.list_kept([*map(json.loads, lines)])
    things = {found.find_image(uri): each for uri, each in read_records(records)}
    changed, missing = compare(found, things, kept)
    lost = missing + abs(found.num_objects - counts.read)
    reasons = ", ".join(f"{name} {n}" for name, n in sorted(result.rejected_objects.items()))
    rejected = f"{counts.rejected:,}" + f" ({reasons})" * bool(reasons)
    precision = score(found, things, kept, python, scratch) if python else "-"
    cells = (f"{counts.written:,}", rejected, counts.merged, lost, changed, precision)
    return Measured(cells, things)


def compare(found: AnnotationSet, things: Things, expected: Things) -> tuple[int, int]:
    """Returns how many objects equal none that is expected, and how many of these are missing."""
    changed = missing = 0
    for image in {*things, *expected}:
        shown = found.photographs[image].shown
        pair = (cut(some.get(image, []), shown) for some in (things, expected))
        more, fewer = count_changed(*pair)
        changed, missing = changed + more, missing + fewer
    return changed, missing


def score(
    found: AnnotationSet, things: Things, expected: Things, python: str, scratch: Path
) -> str:
    """Returns the average precision by pycocotools, or why there is none."""
    images = {image: number for number, image in enumerate(found.photographs, start=1)}
    # As those of records are.
    expected = {
        image: cut(some, found.photographs[image].shown) for image, some in expected.items()
    }
    names = sorted({each.label for one in expected.values() for each in one})
    truth, results = scratch / "truth.json", scratch / "results.json"
    objects = {
        "images": [{"id": number} for number in images.values()],
        "categories": [{"id": number, "name": name} for number, name in enumerate(names)],
        "annotations": [*_list_annotations(expected, images, names)],
    }
    truth.write_text(json.dumps(objects))
    results.write_text(json.dumps([*_list_annotations(things, images, names)]))
    done = _run(python, "score", truth, results)
    return f"{float(done.stdout):.3f}" if not done.returncode else _say_error(done.stderr)


def _list_annotations(
    things: Things, images: dict[Path, int], names: list[str]
) -> Iterator[dict[str, object]]:
    """Yields objects as COCO and as results of a detector have them; ids begin with 1."""
    number = 0
    for image, some in things.items():
        for each in some:
            number += 1
            left, top, right, bottom = each.box
            yield {
                "id": number,
                "image_id": images[image],
                "category_id": names.index(each.label) if each.label in names else -1,
                "bbox": [left, top, right - left, bottom - top],
                "area": (right - left) * (bottom - top),
                "iscrowd": int(each.is_crowd),
                "score": 1.0,
            }


def measure_other(name: str, found: AnnotationSet, python: str, scratch: Path) -> str:
    """Returns how many objects are in the COCO of another tool, or why there is none."""
    if found.form not in TOOLS[name][1]:
        return "-"
    target = scratch / "coco"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    parts = (each for part in _list_parts(found) for each in part)
    done = _run(python, name, found.form, found.path, target, *parts)
    written = [*target.rglob("*.json")]
    if done.returncode or not written:
        return f"refused: {_say_error(done.stderr)}"
    things: Things = {}
    for picture in (each for file in written for each in read_coco(file)):
        if image := found.find_image(picture.name):
            placed = place_things(picture, found.photographs[image], found.orientation)
            things.setdefault(image, []).extend(placed)
    # Their COCO has other flags than some forms.
    changed, _ = compare(found, _drop_flags(things), _drop_flags(found.things))
    return f"{sum(map(len, things.values())):,}" + f" ({changed} changed)" * bool(changed)


def _list_parts(found: AnnotationSet) -> list[tuple[Path, Path]]:
    """Returns the files of annotations, or the set as often as it has folders of images."""
    if found.form != "coco":
        return [(found.path, folder) for folder in {image.parent for image in found.photographs}]
    names = ((path, next(read_coco(path)).name) for path in list_coco(found.path))
    images = ((path, found.find_image(name)) for path, name in names)
    return [(path, image.parent) for path, image in images if image]


def _drop_flags(things: Things) -> Things:
    return {image: _drop(some) for image, some in things.items()}


def _drop(things: Iterable[Thing]) -> list[Thing]:
    return [each._replace(is_crowd=False, difficult=False) for each in things]


def _run(python: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [python, str(_OTHERS), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def _say_error(text: str) -> str:
    return ([*filter(str.strip, text.splitlines())] or ["nothing is written"])[-1].strip()


def _count_other(one: Things, other: Things) -> int:
    """Returns how many objects of images of one name are in one of two sets only."""
    first, second = ({image.name: each for image, each in some.items()} for some in (one, other))
    return sum(
        sum(count_changed(*map(_drop, (first.get(name, ()), second.get(name, ())))))
        for name in {*first, *second}
    )


def list_sets(arguments: argparse.Namespace, scratch: Path) -> list[AnnotationSet]:
    """Returns the sets that are given, or those that it makes."""
    if arguments.sets:
        return [
            AnnotationSet(f"{path.parent.name}/{path.name}", path, arguments.box_orientation)
            for path in arguments.sets
        ]
    drawn, images = scratch / "drawn", scratch / "photographs"
    make_photographs(drawn, _NUM_PHOTOGRAPHS, arguments.photographs)
    images.mkdir()
    for path in [*drawn.rglob("*.jpg")]:
        path.rename(images / path.name)
    photos = make_photos(images)
    forms = write_forms(scratch / "forms", photos, images)
    add_lost_object(forms["coco"])
    usual = write_forms(scratch / "usual", keep_usual(photos), images)
    turned = write_turned(scratch / "turned", images)
    made = [AnnotationSet(form, path) for form, path in forms.items()]
    made += [AnnotationSet(f"{form}, no faults", path) for form, path in usual.items()]
    for way, path in turned.items():
        made.append(AnnotationSet(f"turned, {way} pixels", path))
        made.append(AnnotationSet(f"turned, {way} pixels, said so", path, way))
    return made


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", nargs="*", type=Path, help="files or folders of annotations")
    parser.add_argument("--photographs", type=Path, help="folder of JPEGs to draw objects on")
    parser.add_argument("--box-orientation", help="of the given sets: upright or stored")
    parser.add_argument("--python", help="one that has pycocotools and other tools")
    return parser.parse_args()


def main() -> None:
    """Prints both tables."""
    arguments = _parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        sets = list_sets(arguments, scratch)
        _print_row(_HEADER)
        _print_row(["---", *["---:"] * (len(_HEADER) - 1)])
        written: dict[str, Things] = {}
        for each in sets:
            measured = measure(each, arguments.python, scratch)
            written[each.name] = measured.things
            _print_row([each.name, each.num_images, f"{each.num_objects:,}", *measured.cells])
        if not arguments.sets:
            differ = sum(_count_other(written["coco"], written[form]) for form in FORMS)
            print(f"\n{differ} objects of the records of a form are not in those of COCO.")
        if not arguments.python:
            return
        print()
        _print_row(["set", "objects", *TOOLS])
        _print_row(["---", *["---:"] * (len(TOOLS) + 1)])
        for each in sets:
            cells = (measure_other(name, each, arguments.python, scratch) for name in TOOLS)
            _print_row([each.name, f"{each.num_objects:,}", *cells])


def _print_row(cells: list[object]) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
