"""How many near copies of photographs are found, by hash and by features, and how long that takes.

    python benchmarks/near_copies.py --photographs DIR [--images 300] [--hashes 1000000]
    python benchmarks/near_copies.py --photographs DIR --features

Eight edits of each of some photographs are looked for among the hashes of all of them: the share
that is a pair with its original, and the pairs of photographs, which are false unless they are
copies. `all` compares every pair, `bands` those that share a band of 16 bits, as in a dataset of
more than 3,000 images. Then hashes are compared: evenly spread ones with 1 % near copies, and equal
ones with up to three other bits, as of a million scans of an empty form. Without photographs, only
these are measured.

With `--features`, photographs and edits are one dataset, with features of EfficientNet-Lite0. The
pairs that `validate` verifies are counted: the edits that are a pair with their original, and the
pairs of images that are not edits of one photograph, by name.
"""

from __future__ import annotations

import argparse
import io
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

import darkroom
from darkroom.dataset.index_queries import create_index_view, match_decoded_copies
from darkroom.features.neighbours import find_neighbours
from darkroom.features.opening import open_features
from darkroom.images import near_pairs
from darkroom.images.near_pairs import find_near_pairs, list_groups
from darkroom.images.near_records import create_near_pairs
from darkroom.images.perceptual_hash import HASH_BYTES
from darkroom.images.prepare import prepare_image
from darkroom.options.image import ImageOptions
from darkroom.storage.database import open_database

_COPY_BITS = 20


def _encode(image: Image.Image, quality: int = 90) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def _crop(image: Image.Image, share: float) -> Image.Image:
    across, down = (int(side * (1 - share) / 2) for side in image.size)
    return image.crop((across, down, image.width - across, image.height - down))


Pairs = dict[tuple[str, str], float | None]
EDITS = {
    "JPEG, quality 30": lambda image: _encode(image, 30),
    "half size": lambda image: _encode(image.resize((image.width // 2, image.height // 2))),
    "brighter by 1.4": lambda image: _encode(ImageEnhance.Brightness(image).enhance(1.4)),
    "mirrored": lambda image: _encode(ImageOps.mirror(image)),
    "a border of 30": lambda image: _encode(ImageOps.expand(image, 30, "white")),
    "crop of 90 %": lambda image: _encode(_crop(image, 0.9)),
    "crop of 75 %": lambda image: _encode(_crop(image, 0.75)),
    "turned by 5 degrees": lambda image: _encode(image.rotate(5, Image.Resampling.BICUBIC)),
}


def _hash(data: bytes) -> np.ndarray:
    found = prepare_image(data, ImageOptions()).perceptual_hash
    return np.frombuffer(bytes.fromhex(found or ""), np.uint8)


def _find_pairs(hashes: np.ndarray, narrow: int) -> set[tuple[int, int]]:
    near_pairs._MAX_NARROW = narrow
    unique, numbers = np.unique(hashes, axis=0, return_inverse=True)
    found = find_near_pairs(unique)
    members: dict[int, list[int]] = {}
    for place, number in enumerate(numbers.ravel().tolist()):
        members.setdefault(number, []).append(place)
    sides = [*zip(found.one.tolist(), found.other.tolist(), strict=True)]
    sides += [(number, number) for number in members]
    pairs = {(a, b) for one, other in sides for a in members[one] for b in members[other]}
    return {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}


def list_photographs(folder: Path) -> list[Path]:
    """Returns the JPEGs in a folder, in an order that is random and always the same."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    random.Random(0).shuffle(files)
    return files


def measure_photographs(folder: Path, num_edited: int) -> None:
    """Prints the share of the edits that are found, and the pairs of the photographs."""
    files = list_photographs(folder)
    originals = [_hash(path.read_bytes()) for path in files]
    have = [number for number, each in enumerate(originals) if len(each)]
    hashes = np.stack([originals[number] for number in have])
    print(f"{len(files):,} photographs, {len(have):,} with a hash, {num_edited:,} edited")
    shares: list[list[float]] = []
    for name, edit in EDITS.items():
        edited = [_hash(edit(Image.open(path).convert("RGB"))) for path in files[:num_edited]]
        kept = [number for number, each in enumerate(edited) if len(each) and number in have]
        table = np.concatenate([hashes, np.stack([edited[number] for number in kept])])
        places = [(have.index(number), len(have) + n) for n, number in enumerate(kept)]
        found = [_find_pairs(table, narrow) for narrow in (len(table), 0)]
        shares.append([sum(place in each for place in places) / num_edited for each in found])
        print(f"  {name:20} all {shares[-1][0]:.3f}  bands {shares[-1][1]:.3f}", flush=True)
    means = np.mean(shares, axis=0)
    print(f"  {'mean':20} all {means[0]:.3f}  bands {means[1]:.3f}")
    pairs = sorted(_find_pairs(hashes, len(hashes)))
    print(f"  pairs of the photographs: {len(pairs)}")
    for one, other in pairs:
        print(f"    {files[have[one]].name}  {files[have[other]].name}")


@contextmanager
def _timed(what: str) -> Iterator[None]:
    start, used = time.perf_counter(), time.process_time()
    yield
    seconds, used = time.perf_counter() - start, time.process_time() - used
    print(f"  {what}: {seconds:.1f} s, {used:.1f} s of processor time", flush=True)


def write_edits(files: list[Path], num_edited: int, folder: Path) -> Path:
    """Writes photographs as `NUMBER-0.jpg`, edits of some as `NUMBER-EDIT.jpg`; returns a list."""
    lines = ["image_uri,label"]
    for number, path in enumerate(files):
        edits = [*EDITS.values()] if number < num_edited else []
        image = Image.open(path).convert("RGB")
        for edit, data in enumerate([path.read_bytes(), *(each(image) for each in edits)]):
            (folder / f"{number}-{edit}.jpg").write_bytes(data)
            lines.append(f"{number}-{edit}.jpg,photograph")
    listed = folder / "list.csv"
    listed.write_text("\n".join(lines))
    return listed


def find_by_darkroom(records: Path, scratch: str) -> Pairs:
    """Returns the correlation of each pair in a dataset, by the names of its images.

    It is None where the pixels of a pair were not compared.
    """
    index = str(records / "index")
    features = open_features(index, uses_cache=False)
    neighbours = None if features is None else find_neighbours(features)
    with open_database(scratch) as connection:
        create_index_view(connection, "records", index, scratch)
        match_decoded_copies(connection)
        create_near_pairs(connection, (str(records), index), neighbours)
        shown = connection.execute(_SHOWN).fetchall()
    return {tuple(sorted(Path(uri).stem for uri in row[:2])): row[2] for row in shown}


def count_found(pairs: Iterable[tuple[str, str]], num_edited: int) -> tuple[list[float], list]:
    """Returns the share of each edit that is a pair with its original, and pairs of others.

    These have images of two photographs, as the numbers of photograph and edit.
    """
    found = [0] * len(EDITS)
    others = []
    for pair in pairs:
        one, other = sorted(tuple(map(int, name.split("-"))) for name in pair)
        if one[0] != other[0]:
            others.append((one, other))
        elif one[1] == 0:
            found[other[1] - 1] += 1
    return [count / num_edited for count in found], others


def measure_features(folder: Path, num_edited: int) -> None:
    """Prints the share of the edits that are verified pairs, and all other pairs."""
    files = list_photographs(folder)
    print(f"{len(files):,} photographs, {num_edited:,} edited, by features and pixels")
    with tempfile.TemporaryDirectory() as scratch:
        source, records = Path(scratch, "source"), Path(scratch, "records")
        source.mkdir()
        listed = write_edits(files, num_edited, source)
        with _timed("conversion"):
            darkroom.convert(listed, records)
        with _timed("features"):
            darkroom.embed(records)
        with _timed("all pairs"):
            pairs = find_by_darkroom(records, scratch)
    verified = {pair: correlation for pair, correlation in pairs.items() if correlation}
    shares, others = count_found(verified, num_edited)
    for name, share in zip(EDITS, shares, strict=True):
        print(f"  {name:20} {share:.3f}")
    print(f"  {'mean':20} {np.mean(shares):.3f}")
    print(f"  {len(verified):,} verified pairs, {len(others)} of them of two photographs:")
    for pair in others:
        print("   ", *(f"{files[number]} {edit}" for number, edit in pair))
    print(f"  {len(pairs) - len(verified):,} pairs that are not verified")


_SHOWN = """
SELECT DISTINCT a.uri, b.uri, correlation FROM near
JOIN near_looks AS one ON one.number = near.one
JOIN near_looks AS other ON other.number = near.other
JOIN records AS a ON a.row = one.row JOIN records AS b ON b.row = other.row
WHERE one.content <> other.content
"""


def measure_hashes(kind: str, count: int) -> None:
    """Prints how long all pairs of some hashes take, in this process alone."""
    rng = np.random.default_rng(0)
    hashes = rng.integers(0, 256, (count, HASH_BYTES), np.uint8)
    if kind == "spread":
        bits = np.unpackbits(hashes[: count // 100], axis=1)
        for row in bits:
            row[rng.choice(256, _COPY_BITS, replace=False)] ^= 1
        hashes[-len(bits) :] = np.packbits(bits, axis=1)
    else:
        hashes[:] = hashes[0]
        for _ in range(3):
            places = np.arange(count), rng.integers(0, HASH_BYTES, count)
            hashes[places] ^= np.left_shift(1, rng.integers(0, 8, count)).astype(np.uint8)
        hashes = np.unique(hashes.view(f"V{HASH_BYTES}")).view(np.uint8).reshape(-1, HASH_BYTES)
    start = time.perf_counter()
    pairs = find_near_pairs(hashes)
    groups = sum(1 for _ in list_groups(len(hashes), pairs))
    seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    whole = "all pairs" if pairs.is_complete else "not all pairs, and said so"
    print(
        f"{len(hashes):>9,} hashes, {kind}: {seconds:.1f} s, {peak / 1024:,.0f} MB, "
        f"{len(pairs.one):,} pairs, {groups:,} groups, {whole}",
        flush=True,
    )


def main() -> None:
    """Measures what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--photographs", type=Path, help="folder of JPEGs")
    parser.add_argument("--images", type=int, default=300, help="photographs that are edited")
    parser.add_argument("--hashes", type=int, default=1_000_000, help="hashes that are compared")
    parser.add_argument("--features", action="store_true", help="by features and pixels instead")
    parser.add_argument("--kind", choices=["spread", "alike"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.kind:
        measure_hashes(arguments.kind, arguments.hashes)
        return
    if arguments.features:
        measure_features(arguments.photographs, arguments.images)
        return
    if arguments.photographs:
        measure_photographs(arguments.photographs, arguments.images)
    for kind in ("spread", "alike"):
        own = [sys.executable, __file__, "--kind", kind, "--hashes", str(arguments.hashes)]
        subprocess.run(own, check=True)


if __name__ == "__main__":
    main()
