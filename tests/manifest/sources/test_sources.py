import pytest

from darkroom.dataset.example import encode_example
from darkroom.dataset.schema import Schema
from darkroom.dataset.tfrecord import frame_record
from darkroom.errors import DataError, UsageError
from darkroom.manifest.opening import open_sources
from darkroom.manifest.sources.csv import CsvSource
from darkroom.manifest.sources.folder import FolderSource
from darkroom.manifest.sources.jsonl import JsonlSource
from darkroom.options.manifest import ManifestOptions


def write(path, text="image_uri,label\na.jpg,cat\n"):
    path.write_text(text)
    return path


def test_a_source_is_known_by_its_ending(tmp_path):
    (source,) = open_sources(write(tmp_path / "m.CSV"))
    assert isinstance(source, CsvSource)
    for name in ("m.jsonl", "m.ndjson"):
        (source,) = open_sources(str(write(tmp_path / name, '{"image_uri": "a.jpg"}')))
        assert isinstance(source, JsonlSource)


def test_a_folder_is_a_source(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "a.jpg").touch()
    (source,) = open_sources(tmp_path)
    assert isinstance(source, FolderSource)


def test_a_pattern_opens_files_in_the_order_of_their_names(tmp_path):
    for name in ("b.csv", "a.csv", "c.txt"):
        write(tmp_path / name)
    sources = open_sources(str(tmp_path / "*.csv"))
    assert [source.name for source in sources] == [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]


def test_a_name_with_brackets_is_a_name_first(tmp_path):
    (source,) = open_sources(write(tmp_path / "m[1].csv"))
    assert source.name == str(tmp_path / "m[1].csv")


def test_files_of_a_pattern_have_the_same_columns(tmp_path):
    write(tmp_path / "a.csv", "image_uri,label,age\na.jpg,cat,7\n")
    write(tmp_path / "b.csv", "label,age,image_uri\ncat,7,a.jpg\n")
    assert len(open_sources(str(tmp_path / "*.csv"))) == 2
    write(tmp_path / "c.csv", "image_uri,label\na.jpg,cat\n")
    with pytest.raises(DataError, match=r"The columns of .*c\.csv differ from those of .*a\.csv"):
        open_sources(str(tmp_path / "*.csv"))


def test_a_schema_makes_different_files_alike(tmp_path):
    write(tmp_path / "a.csv", "image_uri,age\na.jpg,7\n")
    write(tmp_path / "b.csv")
    options = ManifestOptions(schema=Schema.parse({"image_uri": "image"}))
    assert len(open_sources(str(tmp_path / "*.csv"), options)) == 2


def test_a_file_is_not_taken_for_a_folder_of_annotations(tmp_path):
    write(tmp_path / "a.xml")
    with pytest.raises(UsageError, match="is a file, and a source of the format voc is a folder"):
        open_sources(tmp_path / "a.xml", ManifestOptions(format="voc"))
    with pytest.raises(DataError, match=r"Nothing below .* is an export of Label Studio"):
        open_sources(tmp_path, ManifestOptions(format="label_studio"))


def test_a_source_of_unknown_kind_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.csv"):
        open_sources(tmp_path / "nothing.csv")
    with pytest.raises(FileNotFoundError, match="nothing does not exist"):
        open_sources(tmp_path / "nothing")
    with pytest.raises(UsageError, match=r"The kind of the source .*m\.txt is unknown") as caught:
        open_sources(write(tmp_path / "m.txt"))
    assert "coco" in caught.value.hint
    with pytest.raises(DataError, match=r"No file matches .*\*\.csv"):
        open_sources(str(tmp_path / "*.csv"))
    (tmp_path / "photos.csv").mkdir()
    with pytest.raises(
        UsageError, match=r"photos\.csv is a folder, and its name ends as that of a"
    ):
        open_sources(tmp_path / "photos.csv")
    with pytest.raises(UsageError, match="The source is of type list, expected"):
        open_sources(["a.jpg"])


def test_records_are_told_that_they_are_records(tmp_path):
    path = tmp_path / "train.record"
    features = {"image/encoded": b"\xff\xd8\xff" + bytes(90), "image/object/bbox/xmin": [0.5]}
    path.write_bytes(b"".join(frame_record(encode_example(features))))
    with pytest.raises(UsageError, match=r"train\.record is a file of TFRecords") as caught:
        open_sources(path)
    assert "convert the images and the annotations" in caught.value.hint
