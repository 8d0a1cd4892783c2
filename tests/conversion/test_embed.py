"""Features of a dataset: computed once, kept by contents, and listed beside the index."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import darkroom
from darkroom.dataset.checksums import list_summed_sidecars
from darkroom.dataset.index import read_index
from darkroom.dataset.layout import FEATURES_FILE
from darkroom.errors import DataError, OutputError, StorageError, UsageError
from darkroom.features import compute
from darkroom.features.networks.network import Input, Network, wrap_model
from darkroom.features.table import Features, read_features
from darkroom.options import ConversionOptions

from ..pictures import encode
from ..trees import read_files

pytest.importorskip("cv2")

SIZE = (6, 8)
# Of the third one, not all bytes are there.
COLORS = [(250, 10 * n, 30) for n in range(8)]


def write_images(folder: Path, colors=COLORS) -> Path:
    folder.mkdir(exist_ok=True)
    lines = ["image_uri,label,split"]
    for n, color in enumerate(colors):
        data = encode(Image.new("RGB", (40 + n, 30), color))
        (folder / f"{n}.png").write_bytes(data[:-30] if n == 3 else data)
        lines.append(f"{n}.png,{'ab'[n % 2]},{'train' if n < 6 else 'eval'}")
    (folder / "list.csv").write_text("\n".join(lines))
    return folder / "list.csv"


def convert(folder: Path, colors=COLORS, *, overwrite=False, **options) -> Path:
    darkroom.convert(
        write_images(folder / "in", colors),
        folder / "records",
        num_shards=2,
        max_rejects=0.5,
        overwrite=overwrite,
        options=ConversionOptions(image_check="header", **options),
    )
    return folder / "records"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    convert(folder)
    return folder


@pytest.fixture
def records(made: Path, tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("DARKROOM_CACHE", str(tmp_path / "cache"))
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy" / "records"


@pytest.fixture
def asked(monkeypatch) -> list[int]:
    """Features are mean colors; gets the number of images that the network is asked about."""
    counts: list[int] = []

    def run(images):
        counts.append(len(images))
        return [images.mean((1, 2), dtype=np.float32)]

    def open_network(model):
        network = wrap_model(model, "1f", [Input((None, *SIZE, 3), "uint8")], run)
        counts.clear()
        return network

    monkeypatch.setattr("darkroom.conversion.embed.open_network", open_network)
    monkeypatch.setattr("darkroom.conversion.embed.check_pretrained", lambda: None)
    return counts


def read(records: Path) -> Features:
    """Returns the features of a dataset, after all its files were checked."""
    assert darkroom.verify(records).findings == ()
    return read_features(f"{records}/features.parquet", f"{records}/index")


def test_a_conversion_without_features_loads_nothing_of_them(tmp_path):
    script = (
        "import sys, darkroom\ndarkroom.convert(*sys.argv[1:], max_rejects=1)\nprint(*sys.modules)"
    )
    command = [sys.executable, "-c", script, write_images(tmp_path / "in"), tmp_path / "records"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not [name for name in done.stdout.split() if name.startswith("darkroom.features")]


def test_features_are_those_of_the_records_in_the_order_of_the_index(records, asked):
    before = read_files(records)
    found = darkroom.embed(records)
    assert (found.images, found.computed, found.undecodable) == (7, 7, 1)
    assert (found.model, found.width, asked) == ("efficientnet-lite0 1f", 3, [7])
    after = read_files(records)
    assert {name for name in after if after[name] != before.get(name)} == {
        "SHA256SUMS",
        "features.parquet",
    }
    features = read(records)
    assert features.model == found.model
    # Rows are numbered from 1.
    order = [row for row in read_index(f"{records}/index")["row"].to_pylist() if row != 4]
    assert features.rows.tolist() == order
    np.testing.assert_array_equal(features.values, [COLORS[row - 1] for row in order])
    # The same again changes nothing.
    assert darkroom.embed(records).computed == 0
    assert (asked, read_files(records)) == ([], after)


def test_only_new_images_of_an_update_are_computed(records, asked, monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr("darkroom.runtime.progress.note", notes.append)
    darkroom.embed(records)
    changed = [(1, 2, 3), *COLORS[1:], (4, 5, 6)]
    convert(records.parent, changed, update=True)
    assert FEATURES_FILE not in list_summed_sidecars(str(records))
    assert "The features of the earlier dataset are gone: use embed (--embed)." in notes
    convert(records.parent, changed, update=True, embed=True)
    assert asked == [2]
    features = read(records)
    np.testing.assert_array_equal(features.values, [changed[row - 1] for row in features.rows])
    assert len(features.rows) == 8


def test_an_update_without_a_cache_takes_features_from_the_earlier_dataset(
    records, asked, monkeypatch, tmp_path
):
    changed = [(1, 2, 3), *COLORS[1:], (4, 5, 6)]
    darkroom.embed(records)
    monkeypatch.setenv("DARKROOM_CACHE", str(tmp_path / "empty"))
    convert(records.parent, changed, update=True, embed=True)
    assert asked == [2]
    features = read(records)
    np.testing.assert_array_equal(features.values, [changed[row - 1] for row in features.rows])
    # Those of another model are not taken.
    monkeypatch.setattr(Network, "model", property(lambda network: "another 2f"))
    convert(records.parent, [(7, 8, 9), *changed[1:]], update=True, embed=True)
    assert asked == [7]


def test_a_run_that_ended_keeps_what_it_has_computed(records, asked, monkeypatch, tmp_path):
    for name, count in {"_BATCH_IMAGES": 2, "_KEPT_IMAGES": 2, "_BATCHES_AHEAD": 0}.items():
        monkeypatch.setattr(compute, name, count)
    before, done = read_files(records), 0

    def end(*_):
        nonlocal done
        done += 1
        if done > 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("darkroom.runtime.progress.advance", end)
        with pytest.raises(KeyboardInterrupt):
            darkroom.embed(records)
    assert read_files(records) == before
    kept = [len(np.load(path)["keys"]) for path in (tmp_path / "cache").rglob("*.npz")]
    assert kept
    assert darkroom.embed(records).computed == 7 - sum(kept)
    assert len(read(records).rows) == 7


def test_whoever_changes_the_dataset_meanwhile_is_noticed(records, asked, monkeypatch):
    def replace(*_, **__):
        convert(records.parent, COLORS[:5], overwrite=True)
        return "net 1f"

    with monkeypatch.context() as patch:
        patch.setattr(Network, "model", property(replace))
        with pytest.raises(DataError, match="was replaced while it was read"):
            darkroom.embed(records)
    assert FEATURES_FILE not in list_summed_sidecars(str(records))


def test_a_dataset_that_cannot_get_a_file_is_left_as_it_is(records, asked, monkeypatch, tmp_path):
    (records / "features.parquet").write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"did not write, .*: features\.parquet"):
        darkroom.embed(records)
    assert (records / "features.parquet").read_bytes() == b"mine"
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(StorageError, match="records cannot be written"):
        darkroom.embed(records)
    with pytest.raises(DataError, match="not a dataset"):
        darkroom.embed(records.parent / "in")


@pytest.mark.parametrize("value", [np.nan, 1e6])
def test_numbers_that_the_table_cannot_have_are_refused(records, asked, monkeypatch, value):
    network = Network("net", "2e", SIZE, 1, lambda images: np.full((len(images), 1), value))
    monkeypatch.setattr("darkroom.conversion.embed.open_network", lambda _: network)
    with pytest.raises(UsageError, match="net gives numbers that are not finite, or larger than"):
        darkroom.embed(records)


def test_a_model_gets_pixels_in_the_form_that_it_declares():
    images = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)
    seen = []

    def run(batch):
        seen.append(batch)
        return [np.zeros((len(batch), 9, 9), np.float32), batch.astype(np.float32)]

    # One image at a time, channels first, as PyTorch exports it.
    network = wrap_model("n", "", [Input((1, 3, 4, 5), "float32")], run)
    assert (network.image_size, network.width) == ((4, 5), 3)
    np.testing.assert_allclose(network.compute(images), images.mean((1, 2)), rtol=1e-6)
    assert [(each.shape, each.dtype) for each in seen[1:]] == [((1, 3, 4, 5), np.float32)] * 2
    np.testing.assert_array_equal(np.concatenate(seen[1:]), images.transpose(0, 3, 1, 2))
    # Any number of any size.
    network = wrap_model("n", "", [Input(("N", None, -1, 3), "uint8")], run)
    assert network.image_size == (224, 224)


@pytest.mark.parametrize(
    ("inputs", "answers", "message"),
    [
        ([], [], "takes nothing, expected images"),
        ([Input((None, 4, 4, 1), "uint8")], [], r"takes uint8 \[None, 4, 4, 1\], expected images"),
        ([Input((None, 4, 4, 3), "string")], [], "takes string"),
        ([Input((8, 4, 4, 3), "uint8")], [], r"takes uint8 \[8, 4, 4, 3\]"),
        ([Input((1, 4, 4, 3), "uint8")] * 2, [], "takes uint8 .*, uint8"),
        ([Input((1, 4, 4, 3), "uint8")], [np.zeros((1, 5), int)], r"gives int64 \[1, 5\] for one"),
        ([Input((1, 4, 4, 3), "uint8")], [np.zeros((1, 5, 5))], r"gives float64 \[1, 5, 5\]"),
        ([Input((1, 4, 4, 3), "uint8")], [np.zeros((1, 5))] * 2, r"\[1, 5\], float64 \[1, 5\]"),
        ([Input((1, 4, 4, 3), "uint8")], [np.zeros((7, 5))], r"gives float64 \[7, 5\]"),
    ],
)
def test_a_model_of_another_kind_is_refused(inputs, answers, message):
    with pytest.raises(UsageError, match=message):
        wrap_model("n", "", inputs, lambda _: answers)


def test_models_of_onnx_are_read_without_tensorflow(records, tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    shapes = {"images": ["N", 3, *SIZE], "means": ["N", 3]}
    tensors = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    ]
    mean = onnx.helper.make_node("ReduceMean", ["images"], ["means"], axes=[2, 3], keepdims=0)
    graph = onnx.helper.make_graph([mean], "means", tensors[:1], tensors[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)])
    model.ir_version = 8
    path = tmp_path / "means.onnx"
    onnx.save(model, path)
    assert darkroom.embed(records, path).model.startswith("means.onnx ")
    features = read(records)
    np.testing.assert_allclose(features.values, [COLORS[row - 1] for row in features.rows])
    path.write_bytes(b"no model")
    with pytest.raises(UsageError, match=r"means\.onnx is not a model that ONNX Runtime reads"):
        darkroom.embed(records, path)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("net.h5", "expected efficientnet-lite0, a file that ends"),
        ("net.keras", "does not exist"),
    ],
)
def test_a_model_that_is_not_there_is_an_error(records, model, message):
    with pytest.raises((UsageError, OSError), match=message):
        darkroom.embed(records, model)


def test_features_are_not_computed_elsewhere(tmp_path):
    with pytest.raises(UsageError, match=r"embed .* cannot be used with FlinkRunner") as error:
        darkroom.convert(tmp_path / "in", tmp_path / "out", runner="flinkrunner", embed=True)
    assert error.value.hint == "Convert first, then use darkroom embed."
