import io
import json
import random
import shutil
from contextlib import suppress
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
import simplejpeg
from PIL import Image

from darkroom.audit.duplicates import find_duplicates
from darkroom.cli import main
from darkroom.conversion.convert import convert
from darkroom.dataset.checksums import read_sums
from darkroom.dataset.index import list_index_files
from darkroom.dataset.keys import make_key
from darkroom.errors import DataError, MissingPathError, OutputError, StorageError, UsageError
from darkroom.options.conversion import ConversionOptions
from darkroom.storage.parquet import BATCH_ROWS

from ..pictures import encode, make_noise

pytestmark = pytest.mark.slow

# Images with the same letter have the same bytes. With the same letter in the other case they have
# the same pixels in other bytes.
ROWS = [
    ("TRAIN", "a1", "cat"),
    ("TRAIN", "a2", "cat"),
    ("TEST", "a3", "cat"),
    ("VALIDATION", "A4", "cat"),
    ("TRAIN", "b1", "cat"),
    ("TRAIN", "b2", "dog"),
    ("TRAIN", "c1", "dog"),
    ("TRAIN", "C2", "dog"),
    ("TRAIN", "d1", "dog"),
    ("TEST", "e1", "dog"),
]
COLUMNS = ["group", "kind", "key", "row", "uri", "split", "label", "keep"]
COLUMNS += ["labels_differ", "splits_differ"]


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    """The current folder gets the list, unless a test names another place."""
    monkeypatch.chdir(tmp_path)


def draw(name):
    """Returns a JPEG: the letter of its name sets the pixels, the case how they are packed."""
    pixels = make_noise(ord(name[0].lower()), 9, 9)
    return encode(pixels, "JPEG", progressive=name[0].isupper())


def write_source(folder):
    folder.mkdir()
    for _, name, _ in ROWS:
        (folder / f"{name}.jpg").write_bytes(draw(name))
    return write_rows(folder, ROWS)


@pytest.fixture
def source(tmp_path):
    return write_source(tmp_path / "in")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A dataset of these images, which no test changes."""
    folder = tmp_path_factory.mktemp("made")
    convert(write_source(folder / "in"), folder / "out")
    return folder / "out"


def write_rows(folder, rows):
    lines = [f"{split},{name}.jpg,{label}" for split, name, label in rows]
    (folder / "m.csv").write_text("split,image_uri,label\n" + "\n".join(lines))
    return folder / "m.csv"


def read(path):
    return pq.read_table(path).to_pylist()


def name_of(row):
    return row["uri"].rpartition("/")[2].partition(".")[0]


def list_names(path):
    groups = {}
    for row in read(path):
        names = groups.setdefault((row["group"], row["kind"]), {})
        names[name_of(row)] = row["keep"]
    return list(groups.values()), [kind for _, kind in groups]


def test_images_of_the_same_bytes_or_pixels_are_grouped(made, tmp_path):
    found = find_duplicates(made)

    groups, kinds = list_names(found.path)
    in_kind = {kind: [g for g, k in zip(groups, kinds, strict=True) if k == kind] for kind in kinds}
    small_key = min(("c1", "C2"), key=lambda name: make_key(f"{name}.jpg"))
    assert sorted(in_kind["bytes"], key=sorted) == [
        {"a1": False, "a2": False, "a3": True},
        {"b1": True, "b2": True},
    ]
    assert sorted(in_kind["pixels"], key=len) == [
        {"c1": small_key == "c1", "C2": small_key == "C2"},
        {"a1": False, "a2": False, "a3": True, "A4": False},
    ]
    assert found.path == str(tmp_path / "duplicates.parquet")
    assert pq.read_schema(found.path).names == COLUMNS
    counts = (found.bytes_groups, found.pixels_groups, found.surplus)
    assert counts == (2, 2, 4)
    assert (found.labels_differ, found.splits_differ, found.has_pixels) == (1, 2, True)


@pytest.fixture
def copies(tmp_path):
    """A list of a JPEG, and of what other programs make of it."""
    folder = tmp_path / "copies"
    folder.mkdir()
    smooth = Image.fromarray(make_noise(7, 9, 12)).resize((96, 72), Image.Resampling.BICUBIC)
    jpeg = encode(smooth, "JPEG", quality=85)
    fast = simplejpeg.decode_jpeg(jpeg, fastdct=True)
    accurate = np.asarray(Image.open(io.BytesIO(jpeg)))
    assert not np.array_equal(fast, accurate)
    files = {
        "photo.jpg": jpeg,
        "again.jpg": encode(smooth, "JPEG", quality=85, progressive=True),
        "pillow.png": encode(accurate, "PNG"),
        "lossless.webp": encode(accurate, "WEBP", lossless=True),
        "tensorflow.png": encode(fast, "PNG"),
        "other.png": encode(accurate ^ 1, "PNG"),
        "worse.jpg": encode(smooth, "JPEG", quality=80),
    }
    with suppress(ImportError):
        import cv2

        pixels = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
        files["opencv.png"] = bytes(cv2.imencode(".png", pixels)[1])
    for name, data in files.items():
        (folder / name).write_bytes(data)
    rows = [f"{'TRAIN' if name == 'photo.jpg' else 'TEST'},{name},cat" for name in files]
    (folder / "m.csv").write_text("split,image_uri,label\n" + "\n".join(rows))
    return folder / "m.csv"


SAME = {"photo", "again", "pillow", "lossless", "tensorflow", "opencv"}


def test_a_jpeg_and_the_images_made_of_it_are_one_group(copies, tmp_path):
    convert(copies, tmp_path / "out")
    found = find_duplicates(tmp_path / "out")
    # Images of other formats are stored as PNGs: here with the bytes of Pillow's.
    groups, kinds = list_names(found.path)
    assert kinds == ["bytes", "pixels"]
    assert groups[0].keys() >= {"pillow", "lossless"}
    group = groups[1]
    assert SAME - {"opencv"} <= group.keys() <= SAME
    assert not group["photo"]  # the copies in the test split stay
    assert (found.pixels_groups, found.splits_differ) == (1, 1)


def test_without_the_second_decoding_only_equal_decoders_are_found(copies, tmp_path):
    convert(copies, tmp_path / "out", options=ConversionOptions(find_decoded_copies="never"))
    groups, _ = list_names(find_duplicates(tmp_path / "out").path)
    assert {"photo", "again", "tensorflow"} in [group.keys() for group in groups]
    assert not [group for group in groups if group.keys() >= {"photo", "pillow"}]


def test_a_group_says_what_differs_and_includes_the_kept_image(made):
    rows = read(find_duplicates(made).path)
    assert {
        (row["labels_differ"], row["splits_differ"]) for row in rows if "b" in name_of(row)
    } == {(True, False)}
    (kept, *others) = [row for row in rows if row["kind"] == "bytes" and name_of(row)[0] == "a"]
    assert (name_of(kept), kept["split"], kept["row"]) == ("a3", "test", 3)
    assert (kept["labels_differ"], kept["splits_differ"]) == (False, True)
    assert kept["key"] == make_key("a3.jpg")
    assert [row["key"] for row in others] == sorted(row["key"] for row in others)
    assert [row["group"] for row in rows] == sorted(row["group"] for row in rows)


@pytest.mark.slow
def test_the_kept_image_does_not_depend_on_the_order_of_the_rows(source, tmp_path):
    results = []
    for seed in range(2):
        rows = list(ROWS)
        random.Random(seed).shuffle(rows)
        convert(write_rows(source.parent, rows), tmp_path / f"{seed}", num_shards=1 + seed)
        found = find_duplicates(tmp_path / f"{seed}", overwrite=True)
        table = pq.read_table(found.path).drop(["row"])
        results.append(table.to_pylist())
    assert results[0] == results[1]


def test_the_next_run_leaves_out_images_that_are_not_kept(made, source, tmp_path):
    found = find_duplicates(made, tmp_path / "twice.parquet")
    second = convert(source, tmp_path / "next", exclude=found.path)

    assert (second.written, second.deduplicated, second.rejected) == (6, 4, {})
    assert second.rows == second.written + second.num_rejected + second.deduplicated
    again = find_duplicates(tmp_path / "next")
    assert (again.surplus, again.splits_differ, again.labels_differ) == (0, 0, 1)
    index = [pq.read_table(path) for path in list_index_files(second.index_dir)]
    names = {name_of(row) for table in index for row in table.to_pylist()}
    assert {"a3", "b1", "b2", "d1", "e1"} < names


def test_a_list_in_the_output_is_an_error(source, tmp_path):
    convert(source, tmp_path / "out")
    path = tmp_path / "out" / "mine.parquet"
    with pytest.raises(OutputError, match="would be in the dataset"):
        find_duplicates(tmp_path / "out", path)
    Path(find_duplicates(tmp_path / "out").path).rename(path)
    with pytest.raises(UsageError, match="is in the output folder"):
        convert(source, tmp_path / "out", exclude=path, overwrite=True)
    # A list that somebody puts there is a file like any other: it stays.
    data = path.read_bytes()
    convert(source, tmp_path / "out", overwrite=True, seed=1)
    assert path.read_bytes() == data
    assert main(["verify", str(tmp_path / "out")]) == 0


def test_a_dataset_in_a_folder_with_wildcards_in_its_name(source, tmp_path):
    result = convert(source, tmp_path / "[a] *b*?")
    names = sorted(path.name for path in (tmp_path / "[a] *b*?/index").glob("*.parquet"))
    assert {f"index/{name}" for name in names} < read_sums(result.output_dir).keys()
    assert list_index_files(result.index_dir) == [f"{result.index_dir}/{name}" for name in names]
    assert find_duplicates(result.output_dir).bytes_groups == 2


def test_without_pixels_only_bytes_are_compared(source, tmp_path):
    convert(source, tmp_path / "out", options=ConversionOptions(image_check="header"))
    found = find_duplicates(tmp_path / "out")
    assert (found.bytes_groups, found.pixels_groups, found.has_pixels) == (2, 0, False)
    assert "Same pixels   unknown (needs" in found.to_text()


def test_a_dataset_without_duplicates_has_an_empty_list(source, tmp_path):
    convert(write_rows(source.parent, ROWS[-2:]), tmp_path / "out")
    found = find_duplicates(tmp_path / "out")
    assert (found.bytes_groups, found.pixels_groups, found.surplus) == (0, 0, 0)
    assert pq.read_table(found.path).num_rows == 0
    assert convert(source, tmp_path / "next", exclude=found.path).written == 2


def test_rows_without_label_conflict_with_no_other(source, tmp_path):
    schema = {"image_uri": "image", "split": "split"}
    convert(source, tmp_path / "out", columns=schema)
    found = find_duplicates(tmp_path / "out")
    assert (found.bytes_groups, found.labels_differ) == (2, 0)
    assert {row["labels_differ"] for row in read(found.path)} == {False}


def test_a_folder_that_is_not_a_dataset_is_named(tmp_path):
    with pytest.raises(MissingPathError, match="out does not exist"):
        find_duplicates(tmp_path / "out")
    with pytest.raises(DataError, match=r"is not a dataset: it has no dataset\.json"):
        find_duplicates(tmp_path)


def test_the_command_says_what_it_found(made, source, tmp_path, capsys):
    assert main(["duplicates", str(made), "--output", f"{tmp_path}/x.parquet"]) == 0
    text = capsys.readouterr().out
    assert "To leave out  4 images" in text
    assert "Two labels    1 group, of which" in text
    assert main(["duplicates", str(made), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["surplus"] == 4
    arguments = ["convert", str(source), "--output-dir", f"{tmp_path}/next", "--json"]
    assert main([*arguments, "--exclude", f"{tmp_path}/x.parquet"]) == 0
    said = capsys.readouterr()
    assert f"4 rows left out, because {tmp_path}/x.parquet lists them." in said.err
    assert json.loads(said.out)["deduplicated"] == 4


@pytest.mark.long
@pytest.mark.parametrize("copies", [False, True], ids=["bytes", "decoded copies"])
def test_many_groups_need_little_memory(made, tmp_path, monkeypatch, copies):
    """The groups take more than the limit of memory, so the disk must be used."""
    query = """SELECT md5(i::VARCHAR) AS key, i AS row,
        '/a/folder/somewhere/' || i AS uri, 'train' AS split, 'cat' AS label,
        sha256((i // 2)::VARCHAR) AS sha256, md5((i // 2)::VARCHAR) AS pixel_hash,
        NULL::VARCHAR AS decoded_hash, 20 AS height, 20 AS width, 100.5 AS luminance, '' AS changes
        FROM range(300000) t(i)"""
    if copies:  # every second image is a JPEG, and the next one was made of it
        query = query.replace("sha256((i // 2)::VARCHAR)", "sha256(i::VARCHAR)")
        query = query.replace(
            "md5((i // 2)::VARCHAR)", "md5(if(i % 2 = 0, 'first ' || i, (i // 2)::VARCHAR))"
        )
        query = query.replace("NULL::VARCHAR", "if(i % 2 = 0, md5((i // 2)::VARCHAR), NULL)")
    root = shutil.copytree(made, tmp_path / "records")
    for number, path in enumerate(list_index_files(f"{root}/index")):
        part = f"{query} WHERE i % 3 = {number}"
        duckdb.sql(f"COPY ({part}) TO '{path}' (ROW_GROUP_SIZE {BATCH_ROWS})")
    monkeypatch.setattr("darkroom.audit.duplicates.check_index_files", lambda *_: None)
    found = find_duplicates(root)
    counts = (0, 150_000, 150_000) if copies else (150_000, 0, 150_000)
    assert (found.bytes_groups, found.pixels_groups, found.surplus) == counts
    kept = duckdb.sql(f"SELECT count(*) FROM '{found.path}' WHERE keep").fetchall()
    assert kept == [(150_000,)]


@pytest.fixture
def listed(made, tmp_path):
    """A dataset, and the list of its duplicates."""
    return made, Path(find_duplicates(made, tmp_path / "list.parquet").path)


def test_a_file_that_exists_is_replaced_only_with_overwrite(listed, capsys):
    root, path = listed
    expected = path.read_bytes()
    path.write_bytes(b"thesis")
    assert main(["duplicates", str(root), "--output", str(path)]) == 4
    assert f"{path} exists already." in capsys.readouterr().err
    assert path.read_bytes() == b"thesis"
    assert main(["duplicates", str(root), "--output", str(path), "--overwrite"]) == 0
    assert path.read_bytes() == expected


@pytest.mark.parametrize("name", ["list", "list.parquet.txt"])
def test_a_name_that_is_not_of_a_parquet_file_is_refused(listed, tmp_path, capsys, name):
    root, _ = listed
    path = tmp_path / name
    assert main(["duplicates", str(root), "--output", str(path), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert f"the name {path} does not end in .parquet." in error["message"]
    assert error["hint"] == f"Name it {path.with_suffix('')}.parquet (--output)."
    assert not path.exists()


def test_a_link_is_replaced_and_not_written_through(listed, tmp_path):
    root, path = listed
    (tmp_path / "thesis.parquet").write_bytes(b"mine")
    link = tmp_path / "link.parquet"
    link.symlink_to(tmp_path / "thesis.parquet")
    with pytest.raises(OutputError, match="exists already"):
        find_duplicates(root, link)
    find_duplicates(root, link, overwrite=True)
    assert (tmp_path / "thesis.parquet").read_bytes() == b"mine"
    assert link.read_bytes() == path.read_bytes()


def test_a_folder_is_not_replaced(listed, tmp_path):
    root, _ = listed
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(OutputError, match="is a folder"):
        find_duplicates(root, tmp_path / "folder.parquet", overwrite=True)
    with pytest.raises(StorageError, match="none does not exist"):
        find_duplicates(root, tmp_path / "none" / "list.parquet")
