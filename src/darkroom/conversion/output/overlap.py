"""Source and output must not overlap: a conversion would replace its source."""

from __future__ import annotations

import os
import re

import pyarrow.compute as pc

from darkroom import storage
from darkroom.dataset.layout import Folders, is_reserved
from darkroom.errors import UsageError
from darkroom.manifest.sources import AnySource
from darkroom.manifest.table import MANIFEST_FILE
from darkroom.runtime.text import list_first
from darkroom.storage.parquet import read_batches

_BATCH_ROWS = 65_536
# Folders that a conversion replaces in its output; each may be the image itself, too.
_REPLACED = r"(index|Split-[^/]*|\.attempt)(/|$)"


def check_source(source: AnySource, output_dir: str) -> None:
    """Checks that the conversion does not replace its source, a folder or a list.

    Raises:
        UsageError: It would replace it; links are followed.
    """
    if not isinstance(source, str | os.PathLike):
        return
    path = storage.absolute(source)
    folder, _, name = _resolve(path).rpartition("/")
    if is_reserved(name) and folder == _resolve(output_dir):
        raise UsageError(
            f"The source {source} would be replaced: it is in the output {output_dir}.",
            "Choose another output folder.",
        )
    if storage.is_folder(path) and _resolve(path) == _resolve(output_dir):
        raise UsageError(
            f"The output {output_dir} is the source itself.",
            f"Choose another output folder, such as {storage.join(output_dir, 'records')}: a later "
            "run leaves it out of the source.",
        )


def check_images_outside(folders: Folders) -> None:
    """Checks that no image of a manifest is where the conversion writes.

    An image that is there under another path, through a link, is not found here: it is a file in
    the output that darkroom did not write, which `ownership.survey` finds.

    Args:
        folders: The manifest, and the folders of the output.

    Raises:
        UsageError: An image is in it.
    """
    roots = {folders.examples, _resolve(folders.examples)}
    below = "|".join(f"{re.escape(root)}/" for root in sorted(roots))
    indexes = {folders.index, _resolve(folders.index)}
    index = "|".join(re.escape(root) for root in sorted(indexes))
    pattern = f"^(({below}){_REPLACED}|({index})(/|$))"
    starts = [f"{root}/" for root in sorted(roots)] + sorted(indexes)
    inside: list[str] = []
    manifest = storage.join(folders.manifest, MANIFEST_FILE)
    for batch in read_batches(manifest, ["uri"], _BATCH_ROWS):
        uris = batch.column(0)
        # Much faster than the pattern, which has to see very few images then.
        if any(pc.any(pc.starts_with(uris, start)).as_py() for start in starts):
            found = uris.filter(pc.match_substring_regex(uris, pattern))
            inside += found.to_pylist()
    if inside:
        raise UsageError(
            f"{len(inside)} image{'s' * (len(inside) > 1)} of the source would be replaced by the "
            f"output {folders.examples}: {list_first(sorted(inside))}.",
            "Choose another output folder, or move the images elsewhere.",
        )


def _resolve(path: str) -> str:
    return path if storage.is_remote(path) else os.path.realpath(storage.local_path(path))
