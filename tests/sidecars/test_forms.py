"""The contents of the sidecars, without the libraries that read them: see tests/readers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import darkroom
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import read_index
from darkroom.errors import UsageError

from ..trees import read_files
from .datasets import KINDS, make_dataset


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def records(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("described")
    return Path(make_dataset(folder / kind, kind, describe=("tfds", "dali")).output_dir)


def index_as_dali_does(path: Path) -> str:
    """What DALI's `tfrecord2idx` writes: it reads lengths, and skips all else."""
    data, place, lines = path.read_bytes(), 0, ""
    while place < len(data):
        length = 8 + 4 + int.from_bytes(data[place : place + 8], "little") + 4
        lines += f"{place} {length}\n"
        place += length
    return lines


def test_dali_gets_offset_and_length_of_each_record(records):
    shards = sorted(records.glob("Split-*/*"))
    assert len(shards) == 4
    for shard in shards:
        split = shard.parent.name.removeprefix("Split-")
        found = records / "dali-index" / split / f"{shard.name}.idx"
        assert found.read_text() == index_as_dali_does(shard)
    assert len(list(records.glob("dali-index/*/*"))) == 4


def test_tfds_finds_the_shards(records):
    info, dataset = (
        json.loads((records / "dataset_info.json").read_text()),
        read_dataset(str(records)),
    )
    assert [each["name"] for each in info["splits"]] == ["train", "test"]
    for each in info["splits"]:
        lengths = [int(length) for length in each["shardLengths"]]
        shards = dataset.splits[each["name"]].shards
        assert lengths == [shard.records for shard in shards]
        assert int(each["numBytes"]) == sum(shard.bytes for shard in shards)
        paths = [
            each["filepathTemplate"].format(SHARD_X_OF_Y=f"{number:05d}-of-{len(lengths):05d}")
            for number in range(len(lengths))
        ]
        assert paths == [shard.file for shard in shards]


SEQUENCE = "tensorflow_datasets.core.features.sequence_feature.Sequence"
EXPECTED = {
    "label": {
        "image/encoded": ("Image", {"dtype": "uint8", "shape": {"dimensions": ["-1", "7", "3"]}}),
        "image/class/label": ("ClassLabel", {"numClasses": "2"}),
        "image/class/text": ("Text", {}),
        "price": ("Tensor", {"dtype": "float32", "encoding": "none", "shape": {}}),
        "count": ("Tensor", {"dtype": "int64", "encoding": "none", "shape": {}}),
        "shop": ("Text", {}, "-1"),
    },
    "labels": {
        "image/class/label": ("ClassLabel", {"numClasses": "3"}, "-1"),
        "image/class/text": ("Text", {}, "-1"),
        "image/class/annotated": ("Tensor", {"dtype": "int64", "encoding": "none", "shape": {}}),
    },
    "numbers": {
        "image/target": ("Tensor", {"dtype": "float32", "encoding": "none", "shape": {}}, "2")
    },
    "some numbers": {
        "image/target": ("Tensor", {"dtype": "float32", "encoding": "none", "shape": {}}, "-1")
    },
    "boxes": {
        "image/object/class/text": ("Text", {}, "-1"),
        "image/object/bbox/xmin": (
            "Tensor",
            {"dtype": "float32", "encoding": "none", "shape": {}},
            "-1",
        ),
        "image/object/annotated": ("Tensor", {"dtype": "int64", "encoding": "none", "shape": {}}),
    },
    "raw": {
        "image/encoded": ("Text", {}),
        "image/class/label": ("ClassLabel", {"numClasses": "2"}),
    },
}


def test_tfds_gets_the_features_of_a_record(records, kind):
    features = json.loads((records / "features.json").read_text())["featuresDict"]["features"]
    assert features.keys() == read_dataset(str(records)).features.keys()
    for name, (class_name, content, *length) in EXPECTED[kind].items():
        feature = features[name]
        if length:
            assert feature["pythonClassName"] == SEQUENCE
            assert feature["sequence"]["length"] == length[0]
            feature = feature["sequence"]["feature"]
        python = feature.pop("pythonClassName")
        assert python.rpartition(".")[2] == class_name
        assert list(feature.values()) == [content]


def test_tfds_gets_the_labels(records, kind):
    path = records / "image.class.label.labels.txt"
    assert path.exists() == (kind in ("label", "labels", "raw"))
    if path.exists():
        assert path.read_bytes() == (records / "labels.txt").read_bytes()
    info = json.loads((records / "dataset_info.json").read_text())
    if kind == "boxes":  # No single feature has them.
        assert "supervisedKeys" not in info
        return
    image, target = (each["featureKey"] for each in info["supervisedKeys"]["tuple"]["items"])
    assert image == "image/encoded"
    assert target == ("image/target" if "numbers" in kind else "image/class/label")


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("described")
    made = make_dataset(folder / "labels", "labels", describe=("croissant", "huggingface"))
    return Path(made.output_dir)


def test_the_object_detection_api_gets_the_classes_by_their_numbers_in_records(records, kind):
    darkroom.describe(records, ["object_detection"])
    text = (records / "label_map.pbtxt").read_text("utf-8")
    if kind == "boxes":
        first, second = (
            'item {\n  id: 1\n  name: "a \\"b\\""\n}\n',
            'item {\n  id: 2\n  name: "c"\n}\n',
        )
        assert text == first + second


def test_croissant_describes_the_index(described):
    found = json.loads((described / "croissant.json").read_text())
    (files,) = found["distribution"]
    assert sorted(described.glob(files["includes"])) == sorted(described.glob("index/*"))
    records, splits, labels = found["recordSet"]
    fields = {each["@id"]: each for each in records["field"]}
    columns = read_index(str(described / "index")).column_names
    assert list(fields) == [f"records/{name}" for name in columns]
    assert fields["records/label"]["dataType"] == "sc:Text"
    assert fields["records/label"]["repeated"] is True
    assert fields["records/height"]["dataType"] == "sc:Integer"
    assert fields["records/luminance"]["dataType"] == "sc:Float"
    assert splits["data"] == [{"splits/name": "train"}, {"splits/name": "test"}]
    assert labels["data"] == [{"labels/name": name} for name in "abc"]
    assert read_dataset(str(described)).fingerprint in found["description"]


def test_croissant_counts_objects(tmp_path):
    made = make_dataset(tmp_path / "boxes", "boxes", describe=("croissant",))
    found = json.loads(Path(made.output_dir, "croissant.json").read_text())
    assert "The images have 12 objects of 2 classes, as boxes" in found["description"]


def test_the_card_names_the_index_of_each_split(described):
    _, header, text = (described / "README.md").read_text().split("---\n", 2)
    (config,) = yaml.safe_load(header)["configs"]
    rows = {
        each["split"]: [row for path in each["path"] for row in read_index_file(described / path)]
        for each in config["data_files"]
    }
    assert {split: {row["split"] for row in each} for split, each in rows.items()} == {
        "train": {"train"},
        "test": {"test"},
    }
    assert sum(map(len, rows.values())) == 12
    assert 'darkroom.load("DATASET", framework="numpy")' in text
    assert "| train | 9 | 2 |" in text


def read_index_file(path: Path) -> list[dict[str, object]]:
    import pyarrow.parquet as pq

    return pq.read_table(path).to_pylist()


def test_compressed_shards_are_read_by_neither_tfds_nor_dali(tmp_path):
    with pytest.raises(UsageError, match="gzip, which dali and tfds cannot read"):
        make_dataset(tmp_path / "no", "raw", compression="gzip", describe=("tfds", "dali"))
    made = make_dataset(tmp_path / "gz", "raw", compression="gzip", describe=("croissant",))
    with pytest.raises(UsageError, match="gzip, which dali cannot read"):
        darkroom.describe(made.output_dir, ["dali", "huggingface"])
    assert "README.md" not in read_files(made.output_dir)
    assert darkroom.verify(made.output_dir).is_sound
