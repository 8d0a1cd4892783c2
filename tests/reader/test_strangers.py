"""Datasets of strangers, whose hashes are right: what is not as it says is named."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import darkroom
from darkroom.conversion.convert import convert
from darkroom.dataset import example
from darkroom.errors import DataError
from darkroom.images.decoders import ImagePreparer
from darkroom.images.near_pixels import RecordPairs
from darkroom.options import ConversionOptions

pytest.importorskip("cv2")


def save(form: str, height: int = 64, width: int = 64) -> bytes:
    file = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).convert("RGB").save(file, form)
    return file.getvalue()


def declare_png(height: int, width: int) -> bytes:
    """Returns a PNG whose header says that it has such sides."""
    header = b"IHDR" + struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    png = save("PNG")
    return png[:12] + header + struct.pack(">I", zlib.crc32(header)) + png[33:]


def declare_jpeg(height: int, width: int) -> bytes:
    """Returns a JPEG whose header says that it has such sides."""
    jpeg = save("JPEG")
    place = jpeg.index(b"\xff\xc0") + 5
    return jpeg[:place] + struct.pack(">2H", height, width) + jpeg[place + 4 :]


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 64 64\n%%EndComments\nshowpage\n%%EOF\n"
# What is stored as which form, and what is said.
STORED = {
    "PostScript": ("png", EPS, "it is not a PNG"),
    "a GIF": ("png", save("GIF"), "it is not a PNG"),
    "a TIFF": ("png", save("TIFF"), "it is not a PNG"),
    "a JPEG as PNG": ("png", save("JPEG"), "it is not a PNG"),
    "a PNG as JPEG": ("jpeg", save("PNG"), ""),
    "a large PNG": (
        "png",
        declare_png(9_000, 9_000),
        "it has 9000 x 9000 pixels, expected 64",
    ),
    "a huge PNG": ("png", declare_png(60_000, 60_000), "exceeds limit"),
    "another PNG": ("png", save("PNG", 64, 63), "it has 63 x 64 pixels, expected 64 x 64"),
    "a large JPEG": (
        "jpeg",
        declare_jpeg(60_000, 60_000),
        "it has 60000 x 60000 pixels, expected 64",
    ),
    "another JPEG": ("jpeg", save("JPEG", 63, 64), "it has 64 x 63 pixels, expected 64 x 64"),
    "a cut PNG": ("png", save("PNG")[:-30], ""),
    "a PNG without checksums": ("png", save("PNG").replace(b"IDAT", b"IDAQ"), ""),
    "too few pixels": ("RAW", bytes(64 * 64), "cannot reshape"),
}


@pytest.fixture
def convert_one(tmp_path, monkeypatch) -> Callable[[str, bytes], Path]:
    """Makes a dataset of one record with an image of 64 x 64 pixels, in which are other bytes."""

    def convert_one(form: str, data: bytes) -> Path:
        prepare = ImagePreparer.prepare
        with monkeypatch.context() as patch:
            patch.setattr(
                ImagePreparer,
                "prepare",
                lambda *arguments: prepare(*arguments)._replace(encoded=data, format=form),
            )
            (tmp_path / "one.png").write_bytes(save("PNG"))
            uri = str(tmp_path / "one.png")
            table = pd.DataFrame({"image_uri": [uri], "label": "a", "split": "train"})
            convert(table, tmp_path / "records")
        return tmp_path / "records"

    return convert_one


@pytest.mark.parametrize(("form", "data", "said"), STORED.values(), ids=STORED)
def test_an_image_that_is_not_what_its_record_says_is_named(
    convert_one, tmp_path, monkeypatch, form, data, said
):
    """A program for PostScript that is there is not started."""
    program = tmp_path / "bin" / "gs"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    folder = convert_one(form, data)
    named = rf"data_tfrecord-00000-of-00001: the image of record 0 cannot be decoded: .*{said}"
    for size in (64, 8):
        loader = darkroom.load(folder, framework="numpy", image_size=size)["train"]
        with pytest.raises(DataError, match=named):
            list(loader)
    assert not (tmp_path / "started").exists()


@pytest.mark.crosses
@pytest.mark.parametrize("name", ["PostScript", "a large PNG", "a huge PNG", "too few pixels"])
def test_an_image_that_cannot_be_shown_is_named(convert_one, tmp_path, name):
    folder = convert_one(*STORED[name][:2])
    with pytest.raises(DataError, match=r"The image of the record .*one\.png cannot be decoded"):
        darkroom.inspect(folder, output_dir=tmp_path / "look")
    rows = np.ones(1, np.int64)
    assert np.isnan(RecordPairs(str(folder), str(folder / "index")).compare(rows, rows))


@pytest.mark.parametrize(
    ("value", "said"),
    [(5, "image/filename has values of another type than bytes"), (b"\xff", "can't decode byte")],
)
def test_a_column_that_is_not_what_the_commit_says_is_named(convert_one, monkeypatch, value, said):
    write = example.encode_example
    monkeypatch.setattr(
        example,
        "encode_example",
        lambda features, image: write({**features, "image/filename": value}, image),
    )
    folder, columns = convert_one("png", save("PNG")), ["image/filename"]
    data = darkroom.load(folder, framework="numpy", image_size=8, columns=columns)
    with pytest.raises(DataError, match=f"the columns of record 0 cannot be decoded: .*{said}"):
        data["train"].images[0]


# Values of a column that the index cannot have.
NUMBERS = (None, -1, 0, 2**25, -(2**31), 2**31, 2**40, -(2**63), 2**62)
FORGED = {
    **dict.fromkeys(("height", "width", "channels", "size_bytes"), NUMBERS),
    "length": NUMBERS,
    "offset": tuple(value for value in NUMBERS if value != 0),
    "format": (None, "gif", "JPEG"),
    "label": (None, "d", ""),
}


@pytest.mark.parametrize("column", FORGED)
def test_an_index_that_says_what_cannot_be_is_named(records, tmp_path, column):
    path, folder = copy_index(records, tmp_path)
    table = pq.read_table(path)
    for value in FORGED[column]:
        values = [*table[column].to_pylist()]
        values[3] = value
        forge(path, table, column, pa.array(values, table.schema.field(column).type))
        said = "1 records without" if value is None else f"in row 3 cannot be right.*{column}"
        with pytest.raises(DataError, match=rf"index-0000.-of-00006\.parquet .*{said}"):
            darkroom.load(folder, framework="numpy", image_size=8)


@pytest.mark.parametrize(
    ("options", "wrong"),
    [({"label_separator": ";"}, ["a", "d"]), ({"target_columns": ("price",)}, [1.0, 2.0])],
    ids=["labels", "numbers"],
)
def test_labels_that_a_dataset_does_not_have_are_named(photos, tmp_path, options, wrong):
    table = photos[:20].drop(columns="label" if "target_columns" in options else "price")
    convert(table, tmp_path / "records", options=ConversionOptions(num_shards=1, **options))
    path = min((tmp_path / "records" / "index").iterdir())
    index = pq.read_table(path)
    forged = [None, *index["label"].to_pylist()[1:-1], wrong]
    forge(path, index, "label", pa.array(forged, index.schema.field("label").type))
    with pytest.raises(DataError, match=f"the label in row {len(index) - 1} cannot be right"):
        darkroom.load(tmp_path / "records", framework="numpy", image_size=8)
    # Without labels is right, where a dataset allows it.
    forged[-1] = None
    forge(path, index, "label", pa.array(forged, index.schema.field("label").type))
    darkroom.load(tmp_path / "records", framework="numpy", image_size=8)


def test_an_index_that_turns_images_round_is_named(records, tmp_path, photos):
    options = ConversionOptions(encoding="raw", num_shards=1)
    convert(photos[photos.split == "train"][:5], tmp_path / "raw", options=options)
    for source in (records, tmp_path / "raw"):
        path, folder = copy_index(source, tmp_path / f"turned-{source.name}")
        table = pq.read_table(path)
        heights = table["height"]
        table = table.set_column(table.column_names.index("height"), "height", table["width"])
        forge(path, table, "width", heights)
        loader = darkroom.load(folder, framework="numpy", image_size=8)["train"]
        with pytest.raises(DataError, match=r"cannot be decoded: it (has|does not have the sides)"):
            list(loader)


def test_an_index_of_many_rows_is_not_read(records, tmp_path):
    path, folder = copy_index(records, tmp_path)
    table = pq.read_table(path)
    rows = table.take(pa.array(np.arange(10_000) % len(table)))
    pq.write_table(rows, path)
    with pytest.raises(DataError, match=rf"{path.name} has 10,000 rows, expected {len(table)}"):
        darkroom.load(folder, framework="numpy", image_size=8)
    pq.write_table(table.slice(1), path)
    with pytest.raises(DataError, match=f"has {len(table) - 1} rows, expected {len(table)}"):
        darkroom.load(folder, framework="numpy", image_size=8)


def copy_index(records: Path, target: Path) -> tuple[Path, Path]:
    """Makes a dataset with the same shards; returns the first file of its index, and its folder."""
    target.mkdir(exist_ok=True)
    for path in records.iterdir():
        if path.name != "index":
            (target / path.name).symlink_to(path)
    (target / "index").mkdir()
    for path in (records / "index").iterdir():
        (target / "index" / path.name).write_bytes(path.read_bytes())
    return min((target / "index").iterdir()), target


def forge(path: Path, table: pa.Table, column: str, values: pa.Array) -> None:
    pq.write_table(table.set_column(table.column_names.index(column), column, values), path)
