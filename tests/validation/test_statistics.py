"""The parts of the statistics that do not need TFDV."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.internal import pickler

import darkroom.validation
from darkroom.validation.statistics import (
    ReadIndexBatchesFn,
    as_list_array,
    list_splits_with_records,
    make_feature_batch,
)


def test_nulls_become_missing_lists():
    column = pa.chunked_array([pa.array([None, "a"]), pa.array(["b", None])])
    assert as_list_array(column).to_pylist() == [None, ["a"], ["b"], None]


def test_a_column_without_any_value_is_left_out():
    rows = pa.table({"height": pa.array([None, None], pa.int64()), "label": ["a", "b"]})
    batch = make_feature_batch(rows)
    assert batch.schema.names == ["image/class/text"]
    assert batch.column(0).to_pylist() == [["a"], ["b"]]


def test_lists_stay_lists_and_numbers_have_their_own_feature():
    labels = pa.table({"label": [["a", "b"], None, []]})
    assert make_feature_batch(labels).to_pydict() == {"image/class/text": [["a", "b"], None, []]}
    numbers = pa.table({"label": pa.array([[1.5, 2.0], None], pa.list_(pa.float32()))})
    assert make_feature_batch(numbers).to_pydict() == {"image/target": [[1.5, 2.0], None]}


def test_a_worker_reads_the_rows_of_its_split(tmp_path):
    path = str(tmp_path / "index-00000-of-00001.parquet")
    rows = {"split": ["train", "eval", "train"], "label": ["cat", "dog", None]}
    pq.write_table(pa.table({**rows, "height": [3, 4, 5]}), path)
    function = pickler.loads(pickler.dumps(ReadIndexBatchesFn("train")))
    [batch] = function.process(path)
    assert batch.to_pydict() == {
        "image/height": [[3], [5]],
        "image/class/text": [["cat"], None],
    }
    assert list(pickler.loads(pickler.dumps(ReadIndexBatchesFn("test"))).process(path)) == []
    assert list_splits_with_records([path]) == ["train", "eval"]


@pytest.mark.usefixtures("light_beam")
def test_importing_validation_loads_no_tensorflow():
    folder = files(darkroom.validation)
    paths = [path.relative_to(folder) for path in sorted(folder.rglob("*.py"))]
    names = [".".join(("darkroom.validation", *path.with_suffix("").parts)) for path in paths]
    assert {"darkroom.validation.statistics", "darkroom.validation.report.write"} <= {*names}
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "print([n for n in sys.modules if n.partition('.')[0] in ('tensorflow', 'tfx_bsl', 'tfx')])"
    )
    command = [sys.executable, "-c", code, *names]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"
