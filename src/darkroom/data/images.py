"""The images that a list or a folder names, with the splits and labels of a conversion."""

from __future__ import annotations

import os
import tempfile

from darkroom.data.splits import ImageSplit
from darkroom.dataset.manifest import Manifest, read_manifest_rows
from darkroom.dataset.rejects import are_too_many, count_rejects, format_hint, list_rejects
from darkroom.dataset.sources import AnySource
from darkroom.errors import DataError, UsageError
from darkroom.options.checks import DEFAULT_MAX_REJECTS
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime import by_name
from darkroom.runtime.text import format_count
from darkroom.targets.kind import find_kind


def list_images(
    source: AnySource,
    options: ManifestOptions | None = None,
    max_rejects: float = DEFAULT_MAX_REJECTS,
) -> tuple[tuple[str, ...], dict[str, ImageSplit]]:
    """Lists images, and reads none of them.

    Args:
        source: As `darkroom.convert` takes it.
        options: How rows become entries.
        max_rejects: The largest share of rejected rows that is allowed, 0 to 1.

    Returns:
        The label map, and the splits that have images by name.

    Raises:
        DataError: The source cannot be used, has no images or no labels, or too many of its rows
            are rejected.
        UsageError: The source is of an unknown kind, an option does not fit it, or it says places
            in the images.
    """
    place = os.fspath(source) if isinstance(source, str | os.PathLike) else ""
    name = place.rstrip("/").rpartition("/")[2]
    with tempfile.TemporaryDirectory(prefix="darkroom-") as folder:
        manifest: Manifest = by_name.find("write_manifest")(source, folder, folder, options)
        if not manifest.has_images or not manifest.has_labels:
            missing = "labels" if manifest.has_images else "images"
            raise DataError(
                f"The source has no {missing}.",
                "Training needs an image and a label in each row. To learn numbers, convert the "
                "list first, with --target-columns.",
            )
        if find_kind(manifest.target.kind).moves:
            raise UsageError(
                f"The images of the source are labelled with {manifest.target.kind}, whose places "
                "are known when a conversion has read the images.",
                "Convert the source with darkroom convert, and give the dataset.",
            )
        if are_too_many(max_rejects, manifest.rejected, manifest.rows):
            hint = format_hint(count_rejects(folder))
            raise DataError(
                f"{format_count(manifest.rejected, 'row', 'were', manifest.rows)} rejected, more "
                f"than the {max_rejects:.2%} allowed. {list_rejects(folder)}",
                f"Fix these rows or remove them.\n{hint}".rstrip(),
            )
        labels = tuple(manifest.labels)
        splits = {}
        for split, count in manifest.splits.items():
            rows = read_manifest_rows(folder, manifest.first_row(split), count)
            are_named = bool(labels)
            uris, numbers = zip(
                *((row.uri, row.label_id if are_named else row.label) for row in rows), strict=True
            )
            splits[split] = ImageSplit(
                split, name, labels, uris, numbers, manifest.fingerprint, manifest.target
            )
    return labels, splits
