import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from darkroom.errors import DataError
from darkroom.manifest import exclusions
from darkroom.manifest.exclusions import write_names


def read(path):
    write_names(str(path), f"{path}.names")
    table = pq.read_table(f"{path}.names")
    return table["name"].to_pylist()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("list.txt", "a.jpg\n\n b,c.jpg \r\n"),
        ("list", "\ufeffa.jpg\nb,c.jpg"),
        ("list.csv", 'a.jpg\n"b,c.jpg",more\n'),
        ("list.csv", 'label,image_uri\ncat,a.jpg\n\ndog,"b,c.jpg"\n'),
        ("list.csv", 'image_uri,keep\na.jpg,False\nx.jpg,true\nx.jpg,TRUE\n"b,c.jpg",\n'),
    ],
)
def test_a_list_is_text_or_a_csv(tmp_path, name, text):
    (tmp_path / name).write_text(text, newline="")
    assert read(tmp_path / name) == ["a.jpg", "b,c.jpg"]


def test_a_list_is_a_parquet_file_in_which_keep_counts(tmp_path):
    table = pa.table(
        {"key": ["k1", "k2", "k3"], "uri": ["/1", None, "/3"], "keep": [False, False, True]}
    )
    pq.write_table(table, tmp_path / "list.parquet")
    assert read(tmp_path / "list.parquet") == ["k1", "/1", "k2"]
    assert pq.read_table(tmp_path / "list.parquet.names")["image"].to_pylist() == [0, 0, 1]


def test_long_lists_are_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(exclusions, "BATCH_ROWS", 3)
    (tmp_path / "list.txt").write_text("".join(f"{number}\n" for number in range(7)))
    assert read(tmp_path / "list.txt") == [str(number) for number in range(7)]


def test_an_empty_list_has_no_names(tmp_path):
    (tmp_path / "list.txt").touch()
    assert read(tmp_path / "list.txt") == []


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("list.parquet", b"no", "cannot be read"),
        ("list.parquet", b"PAR1" + bytes(100) + b"PAR1", r"cannot be read: .*[^\n.]\."),
        ("list.txt", b"\xff.jpg", "is not UTF-8, line 1, byte 0"),
        ("list.csv", b'"a.jpg', "cannot be read"),
    ],
)
def test_an_unreadable_list_is_an_error(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=f"{name} {message}"):
        read(tmp_path / name)


def test_an_error_of_writing_is_not_said_of_the_list(tmp_path, monkeypatch):
    def fail(*_):
        raise pa.ArrowInvalid("not written")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    (tmp_path / "list.txt").write_text("a.jpg\n")
    with pytest.raises(pa.ArrowInvalid, match="not written"):
        read(tmp_path / "list.txt")


def test_an_endless_line_is_refused(tmp_path):
    (tmp_path / "list.txt").write_text("a\n" + "x" * 3_000_000)
    with pytest.raises(DataError, match=r"list.txt, line 2: longer than 1,048,576 characters"):
        read(tmp_path / "list.txt")


def test_a_table_without_names_is_an_error(tmp_path):
    pq.write_table(pa.table({"label": ["cat"]}), tmp_path / "list.parquet")
    with pytest.raises(DataError, match=r"has the columns .*'label'.*expected one of"):
        read(tmp_path / "list.parquet")


def test_the_id_of_a_row_may_be_a_number_and_text_may_be_encoded_as_a_dictionary(tmp_path):
    table = pa.table({"id": [7, 0], "uri": pa.array(["/a", None]).dictionary_encode()})
    pq.write_table(table.append_column("key", pa.nulls(2)), tmp_path / "list.parquet")
    assert read(tmp_path / "list.parquet") == ["/a", "7", "0"]
