"""The parsers of image headers: any bytes have an answer, or are refused by RejectError."""

from __future__ import annotations

import atheris
import harness
import image_seeds

with atheris.instrument_imports(include=["darkroom"]):
    from darkroom.errors import RejectError
    from darkroom.images import headers, jpeg_header


def check(data: bytes) -> None:
    found = headers.sniff_format(data)
    assert found is None or found in image_seeds.FORMATS
    assert isinstance(headers.describe_bytes(data), str)
    traits = jpeg_header.parse_jpeg_traits(data)
    assert traits.orientation is None or 1 <= traits.orientation <= 8
    assert traits.num_scans >= 1
    starts = [start for _, start, _ in jpeg_header.iterate_jpeg_segments(data)]
    assert starts == sorted(set(starts))
    assert jpeg_header.parse_exif_orientation(data) in (None, *range(9))
    assert 1 <= jpeg_header.parse_xmp_orientation(data) <= 8
    assert min(headers.parse_png_size(data)) >= 0
    end = 8
    for _, start, stop in headers.iterate_png_chunks(data):
        assert start == end + 8
        assert start <= stop
        end = stop + 4
        assert end <= len(data)
    try:
        damage = headers.find_png_damage(data)
        assert damage is None or damage
        headers.is_plain_png(data)
    except RejectError:
        pass


if __name__ == "__main__":
    harness.fuzz(check, image_seeds.make_images(), image_seeds.TOKENS)
