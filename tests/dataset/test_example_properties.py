"""Records and examples of any content are the same for us and for TensorFlow."""

from __future__ import annotations

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from darkroom.dataset.example import decode_example, encode_example
from darkroom.dataset.tfrecord import RecordWriter, read_records

pytestmark = pytest.mark.tensorflow

_RECORDS = st.lists(st.binary(max_size=300), max_size=6)
_INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
_FLOATS = st.floats(width=32, allow_nan=False)
_NAMES = st.text(max_size=20).filter(lambda name: name != "image/encoded")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("properties")


@settings(max_examples=settings().max_examples // 4)
@given(_RECORDS, st.integers(0, 300), st.sampled_from(["", "GZIP"]))
def test_tensorflow_reads_the_records_that_we_write(folder, records, cut, compression):
    path = folder / "ours"
    with path.open("wb") as file:
        writer = RecordWriter(file, bool(compression))
        for record in records:
            writer.write(record[:cut], record[cut:])
        writer.close()
    assert list(tf.data.TFRecordDataset(str(path), compression).as_numpy_iterator()) == records


@given(_RECORDS, st.sampled_from(["", "GZIP"]))
def test_we_read_the_records_that_tensorflow_writes(folder, records, compression):
    path = folder / ("theirs.gz" if compression else "theirs")
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for record in records:
            writer.write(record)
    assert list(read_records(str(path))) == records


@settings(max_examples=settings().max_examples // 4)
@given(_RECORDS.filter(bool), st.data(), st.integers(1, 255))
def test_we_reject_what_tensorflow_rejects(folder, records, data, flip):
    path = folder / "damaged"
    with path.open("wb") as file:
        writer = RecordWriter(file)
        for record in records:
            writer.write(record)
    damaged = bytearray(path.read_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= flip
    path.write_bytes(damaged)
    with pytest.raises((tf.errors.DataLossError, tf.errors.OutOfRangeError)):
        list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    with pytest.raises(Exception, match="is damaged"):
        list(read_records(str(path)))


@given(
    st.dictionaries(_NAMES, st.one_of(st.binary(max_size=300), _INT64, _FLOATS), max_size=6),
    st.one_of(st.none(), st.binary(max_size=300)),
)
def test_tensorflow_parses_the_examples_that_we_encode(features, image):
    example = tf.train.Example.FromString(encode_example(features, image) + (image or b""))
    expected = features if image is None else {**features, "image/encoded": image}
    assert set(example.features.feature) == set(expected)
    for name, value in expected.items():
        kind = {bytes: "bytes_list", int: "int64_list", float: "float_list"}[type(value)]
        feature = example.features.feature[name]
        assert feature.WhichOneof("kind") == kind
        assert list(getattr(feature, kind).value) == [value]


_LISTS = st.one_of(
    st.lists(st.binary(max_size=40), max_size=4).map(lambda values: ("bytes_list", values)),
    st.lists(_INT64, max_size=4).map(lambda values: ("int64_list", values)),
    st.lists(_FLOATS, max_size=4).map(lambda values: ("float_list", values)),
    st.just((None, [])),
)


@given(st.dictionaries(st.text(max_size=20), _LISTS, max_size=6))
def test_we_decode_the_examples_that_tensorflow_serialises(features):
    example = tf.train.Example()
    for name, (kind, values) in features.items():
        feature = example.features.feature[name]
        if kind is not None:
            getattr(feature, kind).value.extend(values)
            getattr(feature, kind).SetInParent()
    expected = {name: values for name, (_, values) in features.items()}
    assert decode_example(example.SerializeToString()) == expected


@pytest.mark.parametrize("limit", [1 << 7, 1 << 14, 1 << 21])
def test_lengths_have_the_bytes_of_the_protobuf(limit):
    for length in range(limit - 40, limit + 2):
        image = bytes(length)
        ours = encode_example({}, image) + image
        example = tf.train.Example()
        example.features.feature["image/encoded"].bytes_list.value.append(image)
        assert ours == example.SerializeToString()
