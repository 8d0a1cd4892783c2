"""The graph of the input turns files as a conversion does, or says that it does not read them."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import tensorflow as tf

from darkroom.images.jpeg_header import parse_jpeg_traits
from darkroom.images.pillow import find_orientation
from darkroom.input.graph.file_forms import describe_form
from darkroom.input.graph.orientation import parse_orientation

from ...pictures import encode, make_photo
from ...turned_images import (
    LONG,
    RATIONAL,
    exif_segment,
    make_entry,
    make_jpeg,
    make_odd_jpegs,
    make_random_jpeg,
    xmp_segment,
)

pytestmark = [pytest.mark.tensorflow, pytest.mark.filterwarnings("ignore::UserWarning")]

UNUSUAL = "a JPEG with unusual EXIF data, which may turn it"


@pytest.fixture(scope="module")
def look():
    """Returns the form of an image, and its orientation as a JPEG."""
    signature = [tf.TensorSpec([], tf.string)]
    describe = tf.function(describe_form, input_signature=signature, autograph=False)
    parse = tf.function(parse_orientation, input_signature=signature, autograph=False)
    return lambda data: (describe(data).numpy().decode(), int(parse(data)))


def _convert(data: bytes) -> int:
    found = parse_jpeg_traits(data).orientation
    return find_orientation(data, "jpeg") if found is None else found


def test_a_jpeg_is_turned_as_by_a_conversion_or_not_read(look):
    read = {}
    for name, data in make_odd_jpegs():
        form, orientation = look(data)
        assert form in ("", UNUSUAL)
        if not form:
            assert orientation == _convert(data), name
            read[name] = orientation
    assert read.keys() >= {"long, big-endian", "twice", "XMP attribute", "EXIF without, XMP"}
    assert not read.keys() & {"behind many segments", "behind the tables", "rational"}


def test_random_metadata_turns_a_jpeg_as_by_a_conversion(look):
    chance, seen = random.Random(4), Counter()
    for _ in range(200):
        data = make_random_jpeg(chance, sound=True)
        form, orientation = look(data)
        assert form or orientation == _convert(data), data[:700]
        seen[form, orientation != 1] += 1
    assert seen["", True] > 20 < seen["", False]


def test_a_jpeg_that_says_that_it_is_upright_is_read(look):
    for segment in (exif_segment(make_entry(1, LONG)), xmp_segment(1), exif_segment()):
        assert look(make_jpeg(segment)) == ("", 1)
    assert look(encode(make_photo(), "JPEG")) == ("", 1)
    assert look(make_jpeg(exif_segment(make_entry(6, RATIONAL))))[0] == UNUSUAL
