"""Index and rejects that somebody wrote by hand, with hashes that fit: no reader falls over."""

from __future__ import annotations

import itertools
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from darkroom.cli import main
from darkroom.dataset.checksums import read_sums, sum_bytes, write_sums
from darkroom.errors import DataError
from darkroom.validation.statistics import ReadIndexBatchesFn, list_splits_with_records

INDEX = "index/index-00000-of-00002.parquet"
REJECTS = "rejects.parquet"
Forge = Callable[[pa.Table], pa.Table]


@pytest.fixture
def made(labelled_set) -> Path:
    return labelled_set / "records"


@pytest.fixture
def root(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "data"))


def nest(kind: pa.DataType, depth: int = 40) -> pa.DataType:
    """Returns lists of lists of a type."""
    return nest(pa.list_(kind), depth - 1) if depth else kind


def fill(kind: pa.DataType, value: object, rows: int) -> pa.Array:
    return pa.array([value] * rows, kind)


def be(make: Callable[[int], pa.Array]) -> Callable[[str], Forge]:
    """Returns what replaces the values of a column."""

    def forge_column(name: str) -> Forge:
        def forge(table: pa.Table) -> pa.Table:
            place = table.schema.get_field_index(name)
            return table.set_column(place, name, make(table.num_rows))

        return forge

    return forge_column


def drop_column(name: str) -> Forge:
    return lambda table: table.drop([name])


def double_column(name: str) -> Forge:
    return lambda table: table.append_column(name, table[name])


# What a column is replaced with, by what it is called; `key` and `position` have own ranges, too.
COLUMN_FORGERIES: dict[str, Callable[[str], Forge]] = {
    "missing": drop_column,
    "twice": double_column,
    "empty": be(lambda rows: pa.nulls(rows)),
    "null texts": be(lambda rows: pa.nulls(rows, pa.string())),
    "null numbers": be(lambda rows: pa.nulls(rows, pa.int64())),
    "texts": be(lambda rows: fill(pa.string(), "x", rows)),
    "no texts": be(lambda rows: fill(pa.string(), "", rows)),
    "long texts": be(lambda rows: fill(pa.string(), "x" * 1_000_000, rows)),
    "texts with NUL": be(lambda rows: fill(pa.string(), "a\0b\u202e\x1b[31m", rows)),
    "large texts": be(lambda rows: fill(pa.large_string(), "x", rows)),
    "equal texts": be(lambda rows: fill(pa.string(), "train", rows).dictionary_encode()),
    "bytes": be(lambda rows: fill(pa.binary(), b"\xff\xfe", rows)),
    "whole numbers": be(lambda rows: fill(pa.int64(), 7, rows)),
    "negative numbers": be(lambda rows: fill(pa.int64(), -1, rows)),
    "largest numbers": be(lambda rows: fill(pa.int64(), 2**63 - 1, rows)),
    "small numbers": be(lambda rows: fill(pa.int8(), 1, rows)),
    "unsigned numbers": be(lambda rows: fill(pa.uint64(), 2**64 - 1, rows)),
    "fractions": be(lambda rows: fill(pa.float64(), 0.5, rows)),
    "not a number": be(lambda rows: fill(pa.float64(), float("nan"), rows)),
    "infinite": be(lambda rows: fill(pa.float64(), float("inf"), rows)),
    "truths": be(lambda rows: fill(pa.bool_(), True, rows)),
    "dates": be(lambda rows: fill(pa.timestamp("us"), 0, rows)),
    "lists": be(lambda rows: fill(pa.list_(pa.string()), ["cat", "dog"], rows)),
    "empty lists": be(lambda rows: fill(pa.list_(pa.string()), [], rows)),
    "structs": be(lambda rows: fill(pa.struct([("a", pa.int64())]), {"a": 1}, rows)),
    "maps": be(lambda rows: fill(pa.map_(pa.string(), pa.string()), [("a", "b")], rows)),
    "deep lists": be(lambda rows: pa.nulls(rows, nest(pa.string()))),
}
TABLE_FORGERIES: dict[str, Forge] = {
    "no columns": lambda table: table.select([]),
    "no rows": lambda table: table.slice(0, 0),
    "one row too few": lambda table: table.slice(1),
    "all rows twice": lambda table: pa.concat_tables([table, table]),
    "rows turned": lambda table: table.take(list(range(table.num_rows))[::-1]),
    "other columns": lambda table: table.rename_columns([f"{n}2" for n in table.column_names]),
    "many columns": lambda table: pa.table({f"c{n}": [0] * table.num_rows for n in range(2000)}),
}
FILE_FORGERIES: dict[str, bytes] = {
    "no bytes": b"",
    "text": b"key,split\n" * 100,
    "only the marks of Parquet": b"PAR1" * 4,
    "a footer longer than the file": b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1",
    "zeros": bytes(5000),
}


def sign(root: Path, name: str, data: bytes) -> None:
    """Replaces a file of a dataset, with the hash that fits."""
    (root / name).write_bytes(data)
    write_sums(str(root), {**read_sums(str(root)), name: sum_bytes(data)})


def forge_table(root: Path, name: str, forge: Forge) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(forge(pq.read_table(root / name)), sink)
    sign(root, name, sink.getvalue().to_pybytes())


def read_statistics(root: Path) -> int:
    """Does what ImageStatisticsGen does before TFDV; returns the exit code."""
    files = [str(path) for path in sorted((root / "index").glob("index-*"))]
    try:
        for split, file in itertools.product(list_splits_with_records(files), files):
            for _ in ReadIndexBatchesFn(split).process(file):
                pass
    except DataError as error:
        return error.exit_code
    return 0


def run(*arguments: object) -> Callable[[], int]:
    return lambda: main([str(each) for each in arguments])


def list_readers(root: Path, scratch: Path) -> dict[str, Callable[[], int]]:
    return {
        "verify": run("verify", root),
        "duplicates": run(
            "duplicates", root, "--output", scratch / "duplicates.parquet", "--overwrite"
        ),
        "validate": run("validate", root, "--max-rejects", 1),
        "inspect": run("inspect", root, "--output-dir", scratch / "look", "-n", 2),
        "statistics": lambda: read_statistics(root),
    }


def list_forgeries(made: Path, name: str) -> dict[str, Callable[[Path], None]]:
    """Returns all forgeries of a file, by what they are."""
    found: dict[str, Callable[[Path], None]] = {
        kind: lambda root, data=data: sign(root, name, data)
        for kind, data in FILE_FORGERIES.items()
    }
    forges = dict(TABLE_FORGERIES)
    for column, (kind, make) in itertools.product(
        pq.read_schema(made / name).names, COLUMN_FORGERIES.items()
    ):
        forges[f"{column}: {kind}"] = make(column)
    found |= {
        kind: lambda root, forge=forge: forge_table(root, name, forge)
        for kind, forge in forges.items()
    }
    return found


def attack(made: Path, tmp_path: Path, forgeries, capsys) -> Counter[tuple[str, int]]:
    """Lets all readers read all forgeries; returns how often each ended with which code."""
    counts: Counter[tuple[str, int]] = Counter()
    for kind, forge in forgeries.items():
        root = Path(shutil.copytree(made, tmp_path / "data"))
        forge(root)
        for reader, read in list_readers(root, tmp_path).items():
            code = read()
            said = capsys.readouterr()
            # DuckDB may not compare texts of a megabyte, and says so.
            is_too_long = "long texts" in kind and "DuckDB cannot continue" in said.err
            assert code in ((3,) if is_too_long else (0, 1)), (reader, kind, said)
            assert "Traceback" not in said.err, (reader, kind)
            counts[reader, code] += 1
        shutil.rmtree(root)
    return counts


def test_the_tables_themselves_are_read(root, tmp_path):
    for name in (INDEX, REJECTS):
        forge_table(root, name, lambda table: table)
    assert {read() for read in list_readers(root, tmp_path).values()} == {0}


@pytest.mark.slow
@pytest.mark.parametrize("name", [INDEX, REJECTS])
def test_a_forged_table_is_an_error_of_the_data_or_is_read(name, made, tmp_path, capsys):
    forgeries = [*list_forgeries(made, name).items()]
    attack(made, tmp_path, dict(random.Random(name).sample(forgeries, 4)), capsys)


@pytest.mark.parametrize("kind", ["no bytes", "text", "no rows", "one row too few", "rows turned"])
def test_a_forged_index_is_found(kind, root, made, capsys):
    list_forgeries(made, INDEX)[kind](root)
    assert main(["verify", str(root)]) == 1
    assert INDEX in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "reader", "said"),
    [
        ("row: null numbers", "validate", "has records without row"),
        ("shard: null numbers", "inspect", "has records without shard"),
        ("shard: whole numbers", "inspect", " in shard 7."),
    ],
)
def test_an_index_that_names_no_place_is_named(kind, reader, said, root, made, tmp_path, capsys):
    list_forgeries(made, INDEX)[kind](root)
    assert list_readers(root, tmp_path)[reader]() == 1
    assert said in capsys.readouterr().err


def test_lists_in_lists_take_no_time(root, tmp_path, capsys):
    """DuckDB casts them in a time that doubles with each level: here in no lifetime."""
    forge_table(root, INDEX, COLUMN_FORGERIES["deep lists"]("sha256"))
    for reader in ("duplicates", "validate"):
        assert list_readers(root, tmp_path)[reader]() == 1
        assert "column sha256 is list<" in capsys.readouterr().err


def test_the_name_of_a_split_makes_no_folder_elsewhere(root):
    forge_table(root, INDEX, be(lambda rows: fill(pa.string(), "../../x", rows))("split"))
    with pytest.raises(DataError, match=r"'\.\./\.\./x' is not a split"):
        list_splits_with_records([str(root / INDEX)])


@pytest.mark.long
def test_all_forgeries(made, tmp_path, capsys):
    """Prints how many were tried, and how each reader ended."""
    counts: Counter[tuple[str, int]] = Counter()
    for name in (INDEX, REJECTS):
        counts += attack(made, tmp_path, list_forgeries(made, name), capsys)
    with capsys.disabled():
        print(
            "\n| reader | forged files | error of the data | read |\n| --- | ---: | ---: | ---: |"
        )
        for reader in dict.fromkeys(reader for reader, _ in counts):
            refused, accepted = counts[reader, 1], counts[reader, 0]
            print(f"| {reader} | {refused + accepted:,} | {refused:,} | {accepted:,} |")
