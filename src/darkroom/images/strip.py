"""A strip of pictures of records, which the results of a notebook show."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from darkroom import storage
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import read_index
from darkroom.images.records import find_records, read_record_images
from darkroom.images.shapes import make_picture
from darkroom.images.thumbnails import make_thumbnails
from darkroom.runtime.markup import Html, element
from darkroom.runtime.text import NOT_ANNOTATED, make_visible
from darkroom.targets.kind import find_kind

MAX_SHOWN = 8
_MAX_CAPTION, _MAX_SHAPES = 40, 40


def show_records(
    examples: str,
    index_dir: str,
    rows: Sequence[int] | None = None,
    *,
    split: str = "",
    fingerprint: str = "",
) -> Html | None:
    """Returns pictures of up to eight records, each with its split and what it is labelled with.

    Args:
        examples: The folder of the dataset.
        index_dir: The folder of its index.
        rows: Their numbers in the source; some of all spans if None.
        split: Only records of this split.
        fingerprint: Of the dataset; of another one that is there by now, nothing is shown.

    Returns:
        The pictures; None if there are none to show, as for a dataset in a store, which would have
        to be read again.
    """
    if storage.is_remote(examples) or storage.is_remote(index_dir):
        return None
    try:
        return _draw(examples, index_dir, rows, split, fingerprint)
    except Exception:  # noqa: BLE001 - a result must not fail because of a picture
        return None


def _draw(
    examples: str, index_dir: str, rows: Sequence[int] | None, split: str, fingerprint: str
) -> Html | None:
    dataset = read_dataset(examples)
    if fingerprint not in ("", dataset.fingerprint):
        return None
    chosen = (_choose(index_dir, split) if rows is None else [*rows])[:MAX_SHOWN]
    columns = ("uri", "label", "height", "width")
    found = {row["row"]: row for row in find_records(examples, index_dir, chosen, columns)}
    kind, figures = find_kind(dataset.target.kind), {}
    for number, source in make_thumbnails(read_record_images(found.values())):
        row = found[number]
        shapes = kind.list_shapes(row["label"], dataset.labels)[:_MAX_SHAPES]
        label = kind.show(row["label"]) or NOT_ANNOTATED
        said = make_visible(f"{row['split']}: {label}", _MAX_CAPTION)
        picture = make_picture(source, said, shapes, (row["width"] or 1, row["height"] or 1))
        caption = element("figcaption", said)
        figures[number] = element("figure", picture, caption, title=row["uri"] or None)
    # In the order in which they were asked for.
    shown = [figures[number] for number in chosen if number in figures]
    return element("div", *shown, class_="strip") if shown else None


def _choose(index_dir: str, split: str) -> list[int]:
    table = read_index(index_dir, ["row", "split"])
    if split:
        table = table.filter(pc.equal(table["split"], split))
    # The order of the index is random in each span; these are of all spans.
    count = min(len(table), MAX_SHOWN)
    return [table["row"][number * len(table) // count].as_py() for number in range(count)]
