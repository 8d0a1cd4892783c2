"""Bad inputs 41 to 61: images. One conversion of them all; each test looks at its own row."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image, ImageCms, features

from darkroom.conversion.convert import convert
from darkroom.dataset.index import read_index
from darkroom.dataset.rejects import REJECT_HINTS
from darkroom.errors import RejectError
from darkroom.images.decoders import ImagePreparer
from darkroom.images.prepare import prepare_image
from darkroom.options.image import ImageOptions
from darkroom.runtime import child

from ..pictures import encode, make_photo
from ..tiff_files import make_tiff
from ..turned_images import make_jpeg, xmp_segment

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("decoder_process")]

EXIF_ORIENTATION = 0x0112


class Outcome(NamedTuple):
    """What became of the images, by file name."""

    written: dict[str, dict]
    rejected: dict[str, dict]
    files: dict[str, bytes]
    rows: dict[str, int]

    def refusal(self, name: str) -> tuple[str, str]:
        """Returns reason and detail; the row and the URI are checked."""
        reject = self.rejected[name]
        assert (reject["row"], Path(reject["image_uri"]).name) == (self.rows[name], name)
        assert reject["reason"] in REJECT_HINTS
        return reject["reason"], reject["detail"]

    def changes(self, name: str) -> list[str]:
        """Returns what was changed in a written image; empty when its bytes are its own."""
        row = self.written[name]
        changes = row["changes"].split(",") if row["changes"] else []
        assert (row["size_bytes"] == len(self.files[name])) or changes
        return changes


def make_files() -> dict[str, bytes]:
    photo = make_photo()
    jpeg, png = encode(photo, "JPEG", quality=90), encode(photo, "PNG")
    deep = Image.fromarray(np.arange(960, dtype=np.uint16).reshape(24, 40) * 60)
    ramp = np.linspace(0, 0xFFFF, 960).astype(np.int64).reshape(24, 40, 1)
    transparent = photo.convert("RGBA")
    transparent.putalpha(100)
    several = {"save_all": True, "append_images": [photo.rotate(180)]}
    exif = Image.Exif()
    exif[EXIF_ORIENTATION] = 6
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    other = srgb.replace(b"rXYZ", b"____").replace(b"gXYZ", b"rXYZ").replace(b"____", b"gXYZ")
    other = other.replace("sRGB".encode("utf-16-be"), "oRGB".encode("utf-16-be"))
    flipped = bytearray(jpeg)
    flipped[jpeg.index(b"\xff\xda") + 40] ^= 1
    files = {
        "good.jpg": jpeg,
        "empty.jpg": b"",
        "half.jpg": jpeg[: len(jpeg) // 2],
        "half.png": png[: len(png) // 2],
        "end.jpg": jpeg[:-2],
        "junk.jpg": jpeg + b"PK\3\4 an archive",
        "flipped.jpg": bytes(flipped),
        "flipped.png": png[:-30] + bytes([png[-30] ^ 1]) + png[-29:],
        "png.jpg": encode(photo.rotate(3), "PNG"),
        "cmyk.jpg": encode(photo.convert("CMYK"), "JPEG"),
        "gray.jpg": encode(photo.convert("L"), "JPEG"),
        "deep.png": encode(deep, "PNG"),
        "deep.tiff": encode(deep, "TIFF"),
        "float.tiff": encode(Image.fromarray(np.zeros((4, 4), np.float32)), "TIFF"),
        "integer.tiff": encode(Image.fromarray(np.zeros((4, 4), np.int32)), "TIFF"),
        "twelve.tiff": make_tiff(ramp >> 4, 12, 1),
        "white.tiff": make_tiff(0xFFFF - ramp, 16, 0),
        "fourteen.tiff": make_tiff(ramp >> 2, 14, 1),
        "palette.png": encode(photo.quantize(8), "PNG"),
        "transparent.png": encode(transparent, "PNG"),
        "bit.png": encode(photo.convert("1"), "PNG"),
        "several.gif": encode(photo, "GIF", **several),
        "several.webp": encode(photo, "WEBP", **several),
        "several.png": encode(photo, "PNG", **several),
        "pages.tiff": encode(photo, "TIFF", **several),
        "one.webp": encode(photo, "WEBP"),
        "one.tiff": encode(photo, "TIFF"),
        "one.bmp": encode(photo, "BMP"),
        "one.heic": b"\0\0\0\x18ftypheic" + bytes(40),
        "profile.jpg": encode(photo, "JPEG", icc_profile=other),
        "profile.webp": encode(photo, "WEBP", icc_profile=other),
        "progressive.jpg": encode(photo, "JPEG", progressive=True),
        "twelve.jpg": _change_frame(jpeg, 4, 12),
        "bomb.png": _change_png_size(png, 20_000),
        "bomb.jpg": _change_frame(jpeg, 5, *(20_000).to_bytes(2, "big") * 2),
        "gifar.gif": encode(photo.rotate(9), "GIF") + b"PK\3\4 an archive",
        "page.jpg": b"<!DOCTYPE html><title>404</title>",
        "drawing.jpg": b'<svg xmlns="http://www.w3.org/2000/svg"/>',
        "paper.jpg": b"%PDF-1.7 and so on",
        "icon.ico": encode(photo, "ICO"),
        "gray.pgm": encode(photo.convert("L"), "PPM"),
        "dot.png": encode(photo.crop((0, 0, 1, 1)), "PNG"),
        "line.png": encode(photo.resize((3000, 1)), "PNG"),
        "flat.png": encode(Image.new("RGB", (64, 64), (9, 9, 9)), "PNG"),
    }
    for orientation in range(2, 9):
        exif[EXIF_ORIENTATION] = orientation
        files[f"turned{orientation}.jpg"] = encode(photo, "JPEG", quality=95, exif=exif)
        files[f"xmp{orientation}.jpg"] = make_jpeg(xmp_segment(orientation))
    if features.check("avif"):
        files["one.avif"] = encode(photo, "AVIF")
    return files


def _change_frame(jpeg: bytes, place: int, *values: int) -> bytes:
    """Changes values in the header of a JPEG's frame."""
    start = jpeg.index(b"\xff\xc0") + place
    return jpeg[:start] + bytes(values) + jpeg[start + len(values) :]


def _change_png_size(png: bytes, side: int) -> bytes:
    return png[:16] + side.to_bytes(4, "big") * 2 + png[24:]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory) -> Outcome:
    folder = tmp_path_factory.mktemp("images")
    files = make_files()
    rows = {}
    with (folder / "images.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("split", "image_uri", "label"))
        for number, (name, data) in enumerate(files.items(), 1):
            (folder / name).write_bytes(data)
            writer.writerow(("TRAIN", name, "cat"))
            rows[name] = number
    result = convert(folder / "images.csv", folder / "out", max_rejects=1)
    index = read_index(str(folder / "out" / "index")).to_pylist()
    written = {Path(row["uri"]).name: row for row in index}
    lines = (folder / "out" / "rejects.jsonl").read_text().splitlines()
    rejected = {Path(line["image_uri"]).name: line for line in map(json.loads, lines)}
    assert result.rows == len(files) == len(written) + len(rejected)
    return Outcome(written, rejected, files, rows)


REJECTED = "rejected"


@pytest.mark.fault(41, "0 bytes", REJECTED, code="`empty`", hint="fetch the file again")
def test_an_empty_file_is_rejected(outcome):
    assert outcome.refusal("empty.jpg") == ("empty", "the file has no bytes")


@pytest.mark.fault(
    42,
    "a truncated JPEG or PNG",
    "rejected: every image is decoded to its end",
    code="`truncated`",
    hint="fetch the file again",
)
def test_half_a_file_is_rejected(outcome):
    assert outcome.refusal("half.jpg")[0] == "truncated"
    assert outcome.refusal("half.png") == ("truncated", "it ends early")


@pytest.mark.fault(
    43,
    "a JPEG without its last two bytes",
    "rejected: TensorFlow's decoder would refuse it",
    code="`truncated`",
    hint="fetch the file again",
)
def test_a_jpeg_without_its_end_is_rejected(outcome):
    assert outcome.refusal("end.jpg") == ("truncated", "Premature end of JPEG file")


@pytest.mark.fault(44, "junk after the end of a JPEG", "accepted as it is, bytes untouched")
def test_junk_behind_the_end_is_left_alone(outcome):
    assert outcome.changes("junk.jpg") == []


@pytest.mark.fault(
    45,
    "a flipped bit in the pixels",
    "in a PNG the row is rejected by its checksum; in a JPEG it cannot be detected: the index has "
    "the SHA-256 of what was written",
    code="`undecodable`",
    hint="fetch the file again",
)
def test_a_flipped_bit_is_found_where_there_is_a_checksum(outcome):
    reason, detail = outcome.refusal("flipped.png")
    assert (reason, detail) == ("undecodable", "the checksum of its chunk IDAT is wrong")
    good, flipped = outcome.written["good.jpg"], outcome.written["flipped.jpg"]
    assert good["sha256"] != flipped["sha256"]


@pytest.mark.fault(46, "a PNG named .jpg", "the content counts, and the true format is stored")
def test_the_name_does_not_matter(outcome):
    row = outcome.written["png.jpg"]
    assert (row["format"], row["source_format"], row["changes"]) == ("png", "png", "")


@pytest.mark.fault(
    47, "a CMYK JPEG, also Adobe's inverted one", "becomes an sRGB JPEG (`cmyk` in the index)"
)
def test_cmyk_becomes_srgb(outcome):
    assert outcome.changes("cmyk.jpg") == ["cmyk"]
    row = outcome.written["cmyk.jpg"]
    assert (row["format"], row["channels"]) == ("jpeg", 3)
    photo = np.asarray(make_photo()).astype(int)
    mean = photo.mean((0, 1)) @ [0.299, 0.587, 0.114]
    assert row["luminance"] == pytest.approx(mean, abs=4)  # inverted it would be another


@pytest.mark.fault(48, "a grayscale image", "keeps its bytes, has one channel")
def test_gray_keeps_its_channel(outcome):
    assert outcome.changes("gray.jpg") == []
    assert outcome.written["gray.jpg"]["channels"] == 1


@pytest.mark.fault(
    49,
    "16 bits a channel; a TIFF of 12 bits, or of 16 where white is zero; of another depth; signed "
    "or floating point numbers, or of 32 bits",
    "of 16 and of 12 bits the upper eight are kept, so that white is white (`bit_depth`); numbers "
    "of another depth are not read, and the others have no known range, so the row is rejected",
    code="`unsupported_format`",
    hint="store them with 8 or 16 bits",
)
def test_deep_images_follow_a_policy(outcome):
    assert outcome.changes("deep.png") == ["bit_depth"]
    assert outcome.changes("deep.tiff") == ["format:tiff", "bit_depth"]
    assert outcome.written["deep.png"]["pixel_hash"] == outcome.written["deep.tiff"]["pixel_hash"]
    for name, numbers in (("float.tiff", "floating point"), ("integer.tiff", "signed")):
        reason, detail = outcome.refusal(name)
        assert (reason, detail) == (
            "unsupported_format",
            f"{numbers} numbers of 32 bits have no known range: store them with 8 or 16 bits, "
            "from 0 on",
        )
    # The values of the first are 0 to 4095, those of the second 65535 to 0.
    for name in ("twelve.tiff", "white.tiff"):
        assert outcome.changes(name) == ["format:tiff", "bit_depth"]
        assert outcome.written[name]["luminance"] == pytest.approx(127.5, abs=1)
    assert outcome.refusal("fourteen.tiff")[0] == "unsupported_format"


@pytest.mark.fault(
    50,
    "palettes, transparency, one bit",
    "RGB or gray of 8 bits, on white (`palette`, `alpha`, `bit_depth`)",
)
def test_palettes_transparency_and_single_bits_become_plain(outcome):
    assert outcome.changes("palette.png") == ["palette"]
    assert outcome.changes("transparent.png") == ["alpha"]
    assert outcome.changes("bit.png") == ["bit_depth"]
    shown = {name: outcome.written[name]["channels"] for name in ("transparent.png", "bit.png")}
    assert shown == {"transparent.png": 3, "bit.png": 1}


@pytest.mark.fault(
    51, "animated GIF, WebP, PNG; a TIFF of several pages", "the first frame (`first_frame`)"
)
@pytest.mark.parametrize("name", ["several.gif", "several.webp", "several.png", "pages.tiff"])
def test_of_several_frames_the_first_is_taken(outcome, name):
    assert "first_frame" in outcome.changes(name)
    assert outcome.written[name]["height"] == 24


@pytest.mark.fault(
    52,
    "WebP, AVIF, TIFF, HEIC",
    "become PNG (`format:webp`, ...); HEIC needs the extra `heic`, else the row is rejected",
    code="`unsupported_format`",
    hint="`pip install 'darkroom-data[heic]'`",
)
def test_formats_that_tensorflow_cannot_read_become_png(outcome):
    names = [name for name in ("one.webp", "one.tiff", "one.avif") if name in outcome.files]
    for name in names:
        assert outcome.changes(name) == [f"format:{name[4:]}"]
        assert outcome.written[name]["format"] == "png"
    reason, detail = outcome.refusal("one.heic")
    try:
        import pillow_heif  # noqa: F401
    except ImportError:
        assert reason == "unsupported_format"
        assert "extra 'heic'" in detail
    else:
        assert reason == "undecodable"  # it is a header and nothing else


@pytest.mark.fault(53, "BMP", "becomes PNG (`format:bmp`)")
def test_a_bmp_becomes_png(outcome):
    assert outcome.changes("one.bmp") == ["format:bmp"]
    assert outcome.written["one.bmp"]["format"] == "png"


@pytest.mark.fault(
    54,
    "orientation 2 to 8 in EXIF or XMP data, wherever Pillow finds it",
    "turned upright (`orientation`)",
)
@pytest.mark.parametrize("orientation", range(2, 9))
def test_turned_images_are_stored_upright(outcome, orientation):
    size = (40, 24) if orientation >= 5 else (24, 40)
    for name in (f"turned{orientation}.jpg", f"xmp{orientation}.jpg"):
        assert outcome.changes(name) == ["orientation"]
        row = outcome.written[name]
        assert (row["height"], row["width"]) == size


@pytest.mark.fault(
    55,
    "a color profile that is not sRGB",
    "stays in a file that keeps its bytes; applied in one that is encoded again (`profile`)",
)
def test_a_profile_is_applied_or_stays(outcome):
    assert outcome.changes("profile.jpg") == []
    assert outcome.changes("profile.webp") == ["format:webp", "profile"]


@pytest.mark.fault(
    56,
    "progressive JPEG, rare sampling; 12 bits",
    "what TensorFlow's decoder takes is written, what it refuses is not",
    code="`undecodable`",
    hint="store it with 8 bits",
)
def test_jpegs_that_tensorflow_decodes_are_written(outcome):
    assert outcome.changes("progressive.jpg") == []
    assert outcome.refusal("twelve.jpg")[0] == "undecodable"


@pytest.mark.fault(
    57,
    "a decompression bomb",
    "rejected by the header, undecoded: more than 67 megapixels, or more than 96 MiB "
    "of memory for a file that decompresses more than 1 : 100",
    code="`too_large`",
    hint="make it smaller, or leave it out",
)
def test_a_bomb_is_rejected(outcome):
    detail = "20000 x 20000 pixels are more than 67,108,864 together"
    assert outcome.refusal("bomb.png") == ("too_large", detail)
    assert outcome.refusal("bomb.jpg") == ("too_large", detail)


@pytest.mark.fault(
    58,
    "an image that is something else, too (GIF and ZIP)",
    "only its pixels are written when it is encoded again; reports show pixels, never the file",
)
def test_data_behind_an_image_is_left_out(outcome):
    assert outcome.changes("gifar.gif")[0] == "format:gif"
    image = prepare_image(outcome.files["gifar.gif"], ImageOptions())
    assert b"PK\3\4" not in image.encoded


@pytest.mark.fault(
    59,
    "SVG, PDF, an HTML page saved as .jpg",
    "rejected; the message says what it seems to be",
    code="`not_an_image`",
    hint="fetch the image itself",
)
def test_other_files_under_the_name_of_an_image_are_rejected(outcome):
    assert outcome.refusal("page.jpg") == ("not_an_image", "it looks like HTML")
    assert outcome.refusal("drawing.jpg") == ("not_an_image", "it looks like XML or SVG")
    assert outcome.refusal("paper.jpg") == ("not_an_image", "it looks like PDF")


@pytest.mark.fault(
    59,
    "an image of another format: JPEG 2000, ICO, PSD, DDS, TGA, PGM, PPM, EPS, QOI, DICOM, "
    "OpenEXR, ...",
    "rejected, and the format is named, which its first bytes tell",
    code="`unsupported_format`",
    hint="convert it to PNG",
)
@pytest.mark.parametrize(("name", "shown"), [("icon.ico", "ICO"), ("gray.pgm", "PGM or PPM")])
def test_an_image_of_another_format_is_named(outcome, name, shown):
    detail = f"the image has the format {shown}, which is not read: convert it to PNG"
    assert outcome.refusal(name) == ("unsupported_format", detail)


@pytest.mark.fault(60, "1 x 1, very long, of one color", "accepted; no check judges sizes")
def test_odd_sizes_are_accepted(outcome):
    for name, size in (("dot.png", (1, 1)), ("line.png", (1, 3000)), ("flat.png", (64, 64))):
        assert outcome.changes(name) == []
        row = outcome.written[name]
        assert (row["height"], row["width"]) == size


FAULTY_DECODER = """
import os, signal, time
from darkroom.images import prepare as images
from darkroom.images import sandbox_child
def prepare(data, options, reserve):
    if data.endswith(b"CRASH"): os.kill(os.getpid(), signal.SIGSEGV)
    if data.endswith(b"HANGS"): time.sleep(60)
    if data.endswith(b"EATER"): return bytes(1 << 32)
    return images.prepare_image(data, options, reserve)
sandbox_child.prepare_image = prepare
"""


@pytest.mark.fault(
    61,
    "an image that makes its decoder crash, hang or use too much memory",
    "its decoder is another process: the row is rejected, the run continues",
    code="`decoder_crash`, `decoder_timeout`, `decoder_memory`",
    hint="encode it again with another program",
)
def test_a_crash_a_hang_and_too_much_memory_reject_one_row_each(monkeypatch):
    monkeypatch.setattr(
        child, "PROGRAM", child.PROGRAM.replace("importlib.im", FAULTY_DECODER + "importlib.im")
    )
    monkeypatch.setattr(child, "TICK_SECONDS", 0.02)
    preparer = ImagePreparer(ImageOptions())
    good = encode(make_photo(), "PNG")

    def prepare(data: bytes) -> str:
        try:
            return preparer.prepare(data).format
        except RejectError as error:
            return error.reason

    found = [prepare(good + end) for end in (b"", b"CRASH", b"HANGS", b"EATER", b"")]
    preparer.close()
    assert found == ["png", "decoder_crash", "decoder_timeout", "decoder_memory", "png"]
    assert REJECT_HINTS.keys() >= {"decoder_crash", "decoder_timeout", "decoder_memory"}
