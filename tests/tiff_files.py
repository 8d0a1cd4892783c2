"""Writes TIFF files of any kind: Pillow writes few."""

from __future__ import annotations

import lzma
import struct
import zlib

import numpy as np


def make_tiff(
    samples: np.ndarray,
    bits: int,
    photometric: int,
    *,
    order: str = "<",
    planar: bool = False,
    deflated: bool = False,
    dictionary_bytes: int = 0,
    tags: dict[int, tuple[int, ...]] | None = None,
) -> bytes:
    """Returns a TIFF.

    Args:
        samples: Whole numbers [height, width, samples a pixel], stored in their lowest bits.
        bits: Bits a sample, 1 to 32.
        photometric: How they are meant: 0 white is zero, 1 black is zero, 2 RGB, 5 CMYK.
        order: "<" or ">", as in `struct`.
        planar: Whether each channel is stored on its own.
        deflated: Whether it is compressed; Pillow gives these to libtiff, and reads others itself.
        dictionary_bytes: If not 0, it is compressed by LZMA, and takes this much to be decoded.
        tags: Further tags, as shorts.
    """
    height, width, count = samples.shape
    planes = list(samples.transpose(2, 0, 1)[..., None]) if planar else [samples]
    strips = [_pack(plane, bits, order) for plane in planes]
    if dictionary_bytes:
        packing = [{"id": lzma.FILTER_LZMA2, "dict_size": dictionary_bytes}]
        strips = [lzma.compress(strip, filters=packing) for strip in strips]
    strips = [zlib.compress(strip) for strip in strips] if deflated else strips
    offsets = np.cumsum([8, *(len(strip) for strip in strips)])
    entries: dict[int, tuple[str, tuple[int, ...]]] = {
        256: ("I", (width,)),
        257: ("I", (height,)),
        258: ("H", (bits,) * count),
        259: ("H", (34925 if dictionary_bytes else 8 if deflated else 1,)),
        262: ("H", (photometric,)),
        273: ("I", tuple(map(int, offsets[:-1]))),
        277: ("H", (count,)),
        278: ("I", (height,)),
        279: ("I", tuple(len(strip) for strip in strips)),
        284: ("H", (2 if planar else 1,)),
    }
    entries |= {tag: ("H", values) for tag, values in (tags or {}).items()}
    mark = b"II*\0" if order == "<" else b"MM\0*"
    start = int(offsets[-1] + offsets[-1] % 2)
    data = (mark + struct.pack(order + "I", start) + b"".join(strips)).ljust(start, b"\0")
    return data + _format_directory(entries, start, order)


def _pack(samples: np.ndarray, bits: int, order: str) -> bytes:
    if bits in (8, 16, 32):
        return samples.astype(f"{order}u{bits // 8}").tobytes()
    flat = samples.astype(np.int64).reshape(samples.shape[0], -1, 1)
    digits = (flat >> np.arange(bits - 1, -1, -1)) & 1
    return np.packbits(digits.reshape(samples.shape[0], -1).astype(np.uint8), axis=1).tobytes()


def _format_directory(
    entries: dict[int, tuple[str, tuple[int, ...]]], start: int, order: str
) -> bytes:
    place = start + 2 + 12 * len(entries) + 4
    listed, behind = struct.pack(order + "H", len(entries)), b""
    for tag, (kind, values) in sorted(entries.items()):
        packed = struct.pack(f"{order}{len(values)}{kind}", *values)
        field = packed.ljust(4, b"\0")
        if len(packed) > 4:
            field = struct.pack(order + "I", place + len(behind))
            behind += packed
        listed += struct.pack(order + "HHI", tag, {"H": 3, "I": 4}[kind], len(values)) + field
    return listed + bytes(4) + behind
