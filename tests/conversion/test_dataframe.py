import os
import subprocess
import sys
import zipfile

import pytest
from PIL import Image

from darkroom.conversion import dataframe
from darkroom.conversion.result import TooManyRejectsError
from darkroom.options.conversion import ConversionOptions


def run(script, **environment):
    """Runs a script in an interpreter of its own; returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.long
def test_importing_darkroom_is_quick():
    script = "import time; start = time.perf_counter(); import darkroom"
    assert min(float(run(f"{script}; print(time.perf_counter() - start)")[0]) for _ in "123") < 0.3


@pytest.mark.parametrize("imports", ["pandas, darkroom", "darkroom, pandas"])
def test_the_accessor_is_there_in_either_order(imports):
    pytest.importorskip("pandas")
    script = f"""
import importlib.util, {imports.partition(",")[0]}
importlib.util.find_spec("pandas")
import {imports}
accessor = pandas.DataFrame({{"a": [1]}}).tensorflow
print(type(accessor).__name__, accessor.to_tfr.__name__, accessor.to_tfrecord.__name__)
print(type(pandas.__loader__).__name__, type(pandas.__spec__.loader).__name__)
import sys
print(sum(type(finder).__module__.startswith("darkroom") for finder in sys.meta_path))
"""
    assert run(script) == [
        *("TensorFlowAccessor", "to_tfr", "convert"),
        *("SourceFileLoader", "SourceFileLoader", "0"),
    ]


def test_other_modules_of_the_loader_of_pandas_are_left_alone(tmp_path):
    path = str(tmp_path / "two.zip")
    with zipfile.ZipFile(path, "w") as archive:
        extensions = "register_dataframe_accessor = lambda name: lambda accessor: print(name)"
        archive.writestr("pandas/__init__.py", "import pandas.api.extensions")
        archive.writestr("pandas/api/__init__.py", "")
        archive.writestr("pandas/api/extensions.py", extensions)
        archive.writestr("other.py", "print('other')")
    assert run(f"import sys; sys.path.insert(0, {path!r}); import darkroom, pandas, other") == [
        *("tensorflow", "other"),
    ]


def test_pandas_need_not_be_there():
    script = """
import sys
class NoPandas:
    def find_spec(self, name, path, target=None):
        if name == "pandas": raise ModuleNotFoundError("No module named 'pandas'")
sys.meta_path.insert(0, NoPandas())
import darkroom
for _ in range(2):
    try: import pandas
    except ModuleNotFoundError: print("none")
"""
    assert run(script) == ["none", "none"]


@pytest.fixture
def called(monkeypatch):
    """The arguments with which `convert` was called, without the defaults."""
    calls = []

    def convert(source, output_dir, **options):
        calls.append((source, output_dir, {k: v for k, v in options.items() if v is not None}))
        return "result"

    monkeypatch.setattr("darkroom.conversion.convert.convert", convert)
    return calls


def test_a_frame_is_converted_with_all_options(called):
    result = dataframe.TensorFlowAccessor("frame").to_tfrecord(output_dir="out", seed=7)
    assert result == "result"
    assert called == [("frame", "out", {"seed": 7})]


def test_the_call_of_tensorflow_recorder_works(called):
    dataframe.TensorFlowAccessor("frame").to_tfr(
        output_dir="gs://b/out",
        schema={"i": "image"},
        runner="DirectRunner",
        project=None,
        region=None,
        tfrecorder_wheel=None,
        dataflow_options=None,
        job_label="to-tfr",
        compression="gzip",
        num_shards=0,
    )
    assert called == [
        (
            "frame",
            "gs://b/out",
            {
                "columns": {"i": "image"},
                "runner": "DirectRunner",
                "options": ConversionOptions(compression="gzip"),
            },
        )
    ]


def test_options_for_dataflow_are_passed_on(called):
    with pytest.warns(UserWarning, match="darkroom stages itself"):
        dataframe.TensorFlowAccessor("frame").to_tfr(
            "gs://b/out",
            runner="DataFlowRunner",
            project="p",
            region="r",
            tfrecorder_wheel="x.whl",
            dataflow_options={"num_workers": 2},
            job_label="mine",
            num_shards=4,
        )
    ((_, _, options),) = called
    assert options["options"].beam_options == {"job_name": "mine", "num_workers": 2}
    assert options["num_shards"] == 4


def test_too_many_rejects_name_the_method_that_allows_more(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"image_uri": [f"{tmp_path}/a.png"] * 2, "label": ["cat", "dog"]})
    frame.loc[2] = {"image_uri": f"{tmp_path}/b.png", "label": "cat"}
    Image.new("RGB", (8, 8)).save(tmp_path / "b.png")
    with pytest.raises(TooManyRejectsError) as caught:
        frame.tensorflow.to_tfr(str(tmp_path / "out"))
    assert caught.value.result.num_rejected == 2
    assert "or allow more with max_rejects of df.tensorflow.to_tfrecord." in caught.value.hint
    with pytest.raises(TooManyRejectsError, match=r"more with max_rejects \(--max-rejects\)\."):
        frame.tensorflow.to_tfrecord(str(tmp_path / "out"))


def test_the_defaults_of_tensorflow_recorder_convert_a_frame(tmp_path):
    pd = pytest.importorskip("pandas")

    for i in range(4):
        Image.new("RGB", (8, 8), (i, i, i)).save(tmp_path / f"{i}.png")
    frame = pd.DataFrame(
        {
            "split": ["TRAIN", "TRAIN", "VALIDATION", "TEST"],
            "image_uri": [str(tmp_path / f"{i}.png") for i in range(4)],
            "label": ["cat", "dog", "cat", "dog"],
        }
    )
    result = frame.tensorflow.to_tfr(
        str(tmp_path / "out"), runner="DirectRunner", compression="gzip", num_shards=0
    )

    assert (result.rows, result.written, result.num_rejected) == (4, 4, 0)
    assert dict(result.splits) == {"train": 2, "eval": 1, "test": 1}
    (shard,) = (tmp_path / "out" / "Split-eval").iterdir()
    assert shard.name == "data_tfrecord-00000-of-00001.gz"
    assert shard.read_bytes()[:2] == b"\x1f\x8b"
