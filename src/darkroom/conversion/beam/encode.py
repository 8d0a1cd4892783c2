"""Encodes rows of a manifest and their images as records, index rows and rejects."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import repeat

from darkroom.dataset import example
from darkroom.dataset.index import IndexRow
from darkroom.dataset.rejects import CONVERT_STAGE, Reject
from darkroom.dataset.tfrecord import frame_record
from darkroom.errors import RejectError
from darkroom.images.prepare import PreparedImage
from darkroom.manifest.table import ManifestRow


@dataclass
class EncodedRows:
    """Some rows of a manifest, encoded.

    Attributes:
        num_rows: Number of the rows.
        pieces: The bytes of their records, in order, not joined.
        index_rows: A row of the index for each record.
        rejects: The rows that became no record.
    """

    num_rows: int = 0
    pieces: list[bytes] = field(default_factory=list)
    index_rows: list[IndexRow] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)


def encode_rows(
    rows: Iterable[ManifestRow], images: Iterable[PreparedImage | RejectError | None] = repeat(None)
) -> EncodedRows:
    """Returns the records of rows.

    Args:
        rows: The rows.
        images: The image of each row, or why it cannot be used; None where rows have no images.
    """
    encoded = EncodedRows()
    for row, image in zip(rows, images, strict=False):
        encoded.num_rows += 1
        if isinstance(image, RejectError):
            encoded.rejects.append(_make_reject(row, image))
            continue
        sha256 = hashlib.sha256(image.encoded).hexdigest() if image else None
        encoded.pieces += _frame_example(row, image, sha256)
        encoded.index_rows.append(_index_row(row, image, sha256))
    return encoded


def _frame_example(
    row: ManifestRow, image: PreparedImage | None, sha256: str | None
) -> tuple[bytes, ...]:
    # An empty cell of an input column has no feature.
    features: dict[str, example.FeatureValue] = {
        name: value.encode() if isinstance(value, str) else value
        for name, value in (row.extra or {}).items()
        if value is not None
    }
    if row.label_id is not None and row.label is not None:
        features[example.LABEL_NUMBER] = row.label_id
        features[example.LABEL_TEXT] = row.label.encode()
    if image is None or sha256 is None:
        return frame_record(example.encode_example(features))
    features |= {
        example.IMAGE_FORMAT: image.format.encode(),
        example.IMAGE_HEIGHT: image.height,
        example.IMAGE_WIDTH: image.width,
        example.IMAGE_CHANNELS: image.channels,
        example.IMAGE_FILENAME: row.id.encode(),
        example.IMAGE_SOURCE_ID: row.key.encode(),
        example.IMAGE_SHA256: sha256.encode(),
    }
    return frame_record(example.encode_example(features, image.encoded), image.encoded)


def _index_row(row: ManifestRow, image: PreparedImage | None, sha256: str | None) -> IndexRow:
    found = (row.key, row.row, row.uri, row.split, row.label, row.extra)
    if image is None:
        return IndexRow(*found)
    return IndexRow(
        *found,
        sha256,
        image.pixel_hash,
        image.decoded_hash,
        image.height,
        image.width,
        image.channels,
        image.format,
        len(image.encoded),
        image.luminance,
        ",".join(image.changes),
        image.source_format,
        image.source_height,
        image.source_width,
    )


def _make_reject(row: ManifestRow, error: RejectError) -> Reject:
    return Reject(
        row.row,
        row.uri,
        row.split,
        row.label,
        CONVERT_STAGE,
        error.reason,
        error.detail,
        row.id,
        row.extra or {},
    )
