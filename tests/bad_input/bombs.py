"""Images that take far more memory or time than they seem to, and what preparing them takes.

    python tests/bad_input/bombs.py

prepares all of them in two threads, and prints what became of each and the peaks of memory.
"""

from __future__ import annotations

import io
import json
import os
import resource
import struct
import sys
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from PIL import Image, features

from darkroom.errors import RejectError
from darkroom.images import sandbox
from darkroom.images.decoders import ImagePreparer
from darkroom.options.image import ImageOptions

sandbox.CPU_SECONDS = 2


def make_bombs() -> Iterator[tuple[str, bytes]]:
    """Yields names and bytes of files of at most some megabytes."""
    yield from _make_pngs()
    yield from _make_tiffs()
    yield "gif: canvas of 65535 x 65535", b"GIF89a" + b"\xff" * 4 + b"\0\0\0;"
    frames = [Image.new("L", (9, 9), shade % 256) for shade in range(3000)]
    yield "gif: 3,000 frames", _save(frames[0], "GIF", save_all=True, append_images=frames[1:])
    yield "gif: 12 megapixels", _save(Image.new("P", (3500, 3500)), "GIF")
    yield "gif: 24 megapixels", _save(Image.new("P", (4900, 4900)), "GIF")
    yield "bmp: 40000 x 40000", b"BM" + struct.pack("<IHHI", 99, 0, 0, 54) + _bmp_header(40_000)
    yield "bmp: run lengths", b"BM" + struct.pack("<IHHI", 99, 0, 0, 1078) + _bmp_header(8000, 8, 1)
    yield "webp: 4 megapixels", _save(Image.new("RGB", (2100, 2100)), "WEBP", lossless=True)
    yield "webp: 9 megapixels", _save(Image.new("RGB", (3000, 3000)), "WEBP", lossless=True)
    small = _save(Image.new("RGB", (8, 8)), "WEBP")
    size = struct.pack("<HH", 8000, 8000)
    yield "webp: 64 megapixels", small[:26] + size + small[30:]
    if features.check("avif"):
        yield "avif: 4 megapixels", _save(Image.new("RGB", (2200, 2200)), "AVIF", speed=10)
        small = _save(Image.new("RGB", (64, 64)), "AVIF", speed=10)
        told = b"ispe" + bytes(4) + struct.pack(">II", 64, 64)
        large = told[:8] + struct.pack(">II", 6000, 6000)
        yield "avif: 36 megapixels", small.replace(told, large)
    yield "jpeg: 33 megapixels", _save(Image.new("RGB", (5790, 5790)), "JPEG")
    large = Image.new("RGB", (3340, 3340))
    yield "jpeg: progressive", _save(large, "JPEG", progressive=True, subsampling=0)
    for side in (8192, 8193):
        for name, marker in (("sequential", b"\xff\xc0"), ("progressive", b"\xff\xc2")):
            small = _save(Image.new("RGB", (8, 8)), "JPEG", progressive=marker == b"\xff\xc2")
            place = small.index(marker) + 5
            data = small[:place] + struct.pack(">HH", side, side) + small[place + 4 :]
            yield f"jpeg: {name}, {side} x {side}", data
    yield "jpeg: cmyk", _save(Image.new("CMYK", (2780, 2780)), "JPEG")
    yield "jpeg: 20,000 scans", make_jpeg_of_scans(3000, 20_000)


def make_jpeg_of_scans(side: int, count: int) -> bytes:
    """Returns a gray progressive JPEG with `count` scans more that hold no coefficient at all."""
    data = _save(Image.new("L", (side, side), 99), "JPEG", progressive=True)
    # One code, 0, for the symbol "no more coefficients in 2**14 blocks and as many as follow".
    table = b"\xff\xc4" + struct.pack(">HB", 20, 0x11) + b"\1" + bytes(15) + b"\xe0"
    runs = (side // 8 + 1) ** 2 // 32_767 + 1
    bits = ("0" + "1" * 14) * runs
    bits += "1" * (-len(bits) % 8)
    coded = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    scan = b"\xff\xda" + struct.pack(">HB", 8, 1) + b"\1\x11\1\x3f\0" + coded
    return data[:-2] + table + scan * count + data[-2:]


def _make_pngs() -> Iterator[tuple[str, bytes]]:
    yield "png: 2**31 pixels a side", make_png((1 << 31) - 1, (1 << 31) - 1, b"")
    yield "png: 400 megapixels", make_png(20_000, 20_000, zlib.compress(bytes(1 << 20)))
    yield "png: 64 megapixels", make_png(8000, 8000, _deflate_zeros(8000 * 24_001))
    yield "png: 16 megapixels", make_png(4000, 4000, _deflate_zeros(4000 * 12_001))
    yield "png: 8 megapixels", make_png(2890, 2890, _deflate_zeros(2890 * 8671))
    # Seven passes: each row of each begins with its filter.
    packed = _deflate_zeros(2888 * 2888 * 3 + 2888 // 8 * 15)
    yield "png: interlaced", make_png(2888, 2888, packed, interlaced=1)
    yield "png: more pixels than told", make_png(10, 10, _deflate_zeros(1 << 28))
    text = make_chunk(b"zTXt", b"Comment\0\0" + _deflate_zeros(1 << 28))
    yield "png: text of 256 MiB", make_png(1, 1, zlib.compress(bytes(4)), text)
    profile = make_chunk(b"iCCP", b"profile\0\0" + _deflate_zeros(1 << 28))
    yield "png: profile of 256 MiB", make_png(1, 1, zlib.compress(bytes(4)), profile)
    frames = make_chunk(b"acTL", struct.pack(">II", (1 << 31) - 1, 0))
    yield "png: 2**31 frames", make_png(2890, 2890, _deflate_zeros(2890 * 8671), frames)


def _make_tiffs() -> Iterator[tuple[str, bytes]]:
    packed = _deflate_zeros(2890 * 8670)
    yield "tiff: one strip", make_tiff(2890, 2890, packed)
    yield "tiff: a strip that holds more", make_tiff(64, 64, _deflate_zeros(1 << 28))
    yield "tiff: lengths that lie", make_tiff(64, 64, packed, length=(1 << 32) - 1)
    yield "tiff: rows that lie", make_tiff(8000, 8000, packed, rows=(1 << 32) - 1)
    yield "tiff: 65,535 samples a pixel", make_tiff(2890, 2890, packed, samples=65_535)
    yield "tiff: a tile of 2**31 pixels", make_tiff(64, 64, packed, tile=46_336)


def make_png(
    width: int, height: int, packed: bytes, extra: bytes = b"", interlaced: int = 0
) -> bytes:
    """Returns an RGB PNG of 8 bits with these compressed pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, interlaced)
    chunks = make_chunk(b"IHDR", header) + extra + make_chunk(b"IDAT", packed)
    return b"\x89PNG\r\n\x1a\n" + chunks + make_chunk(b"IEND", b"")


def make_chunk(name: bytes, data: bytes) -> bytes:
    """Returns a chunk of a PNG."""
    body = name + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def make_tiff(
    width: int,
    height: int,
    packed: bytes,
    rows: int | None = None,
    length: int | None = None,
    samples: int = 3,
    tile: int = 0,
) -> bytes:
    """Returns an RGB TIFF of one strip, or tile, that says of itself whatever it is told."""
    size = len(packed) if length is None else length
    place = (325, 324) if tile else (279, 273)
    tags = [(256, width), (257, height), (258, 8), (259, 8), (262, 2), (277, samples)]
    tags += [(322, tile), (323, tile)] if tile else [(278, height if rows is None else rows)]
    tags = sorted([*tags, (place[0], size), (place[1], 8)])
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    directory = struct.pack("<H", len(tags)) + entries + bytes(4)
    return b"II*\0" + struct.pack("<I", 8 + len(packed)) + packed + directory


def _bmp_header(side: int, bits: int = 24, compression: int = 0) -> bytes:
    header = struct.pack("<IiiHHIIiiII", 40, side, side, 1, bits, compression, 0, 0, 0, 0, 0)
    return header + (bytes(1024) + b"\xff\0" * 260_000 + b"\0\1" if compression else b"")


@lru_cache
def _deflate_zeros(length: int) -> bytes:
    packer = zlib.compressobj(1)
    parts = [packer.compress(bytes(min(1 << 20, length - at))) for at in range(0, length, 1 << 20)]
    return b"".join(parts) + packer.flush()


def _save(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def measure(folder: Path) -> dict[str, object]:
    """Prepares the files of a folder in two threads.

    Returns:
        By file name the reason of the refusal, or the size in pixels; and the most memory that this
        process and its children held at once, in MiB.
    """
    preparer = ImagePreparer(ImageOptions())
    threads = set()

    def prepare(path: Path) -> tuple[str, str]:
        threads.add(threading.get_ident())
        try:
            image = preparer.prepare(path.read_bytes())
            return path.name, f"{image.width} x {image.height}"
        except RejectError as error:
            return path.name, f"{error.reason}: {error.detail}"

    # Each twice in a row, so that both threads have the same one at the same time.
    paths = [path for path in sorted(folder.iterdir()) for _ in range(2)]
    ended = threading.Event()
    with ThreadPoolExecutor(3) as pool:
        peak = pool.submit(_watch_memory, ended)
        outcomes = dict(pool.map(prepare, paths))
        ended.set()
    preparer.close()
    return {"outcomes": outcomes, "peak_mib": peak.result() >> 20, "threads": len(threads)}


def _watch_memory(ended: threading.Event) -> int:
    """Returns the most bytes that this process and its children held at once until `ended`."""
    peak = 0
    while not ended.wait(0.005):
        peak = max(peak, sum(_read_resident_bytes(pid) for pid in _find_processes()))
    return peak


def _find_processes() -> Iterator[str]:
    own = str(os.getpid())
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            stat = Path("/proc", pid, "stat").read_text()
            if own in (pid, stat.rpartition(")")[2].split()[1]):
                yield pid


def _read_resident_bytes(pid: str) -> int:
    with suppress(OSError):
        return int(Path("/proc", pid, "statm").read_text().split()[1]) * resource.getpagesize()
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(Path(sys.argv[1]))))
    else:
        for name, data in make_bombs():
            print(f"{len(data):12,}  {name}")
