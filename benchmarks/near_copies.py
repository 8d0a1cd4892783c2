"""How many near copies of photographs are found, by hash and by features, and how long that takes.

    python benchmarks/near_copies.py --photographs DIR [--images 300] [--hashes 1000000]
    python benchmarks/near_copies.py --photographs DIR --features
    python benchmarks/near_copies.py --photographs DIR --pictures 100000 [--keep FOLDER]

Eight edits of each of some photographs are looked for among the hashes of all of them: the share
that is a pair with its original, and the pairs of photographs, which are false unless they are
copies. `all` compares every pair, `bands` those that share a band of 16 bits, as in a dataset of
more than 3,000 images. Then hashes are compared: evenly spread ones with 1 % near copies, and equal
ones with up to three other bits, as of a million scans of an empty form. Without photographs, only
these are measured.

With `--features`, photographs, edits, and copies of 50 other photographs with something over them
are one dataset, with features of EfficientNet-Lite0. The pairs that `validate` verifies are
counted: the edits that are a pair with their original, and the pairs of images that are not edits
of one photograph, by name. With `--images 0` only the 50 are planted, in as many photographs.

With `--pictures`, that many parts of the photographs, which overlap by less than a fifth and have
turned colours, and one copy of 390 of them, are a dataset. Features take an hour; `--keep` keeps
them. What is possible is the share of the copies that their pixels verify, each with its original.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageOps

import darkroom
from darkroom.dataset.index import read_index
from darkroom.dataset.index_queries import create_index_view, match_decoded_copies
from darkroom.features.neighbours import find_neighbours
from darkroom.features.opening import open_features
from darkroom.images import near_pairs
from darkroom.images.near_pairs import find_near_pairs, list_groups
from darkroom.images.near_pixels import RecordPairs
from darkroom.images.near_records import create_near_pairs
from darkroom.images.perceptual_hash import HASH_BYTES
from darkroom.images.prepare import prepare_image
from darkroom.options.image import ImageOptions
from darkroom.storage.database import open_database

_COPY_BITS, _COVERED, _PLANTED = 20, 50, 390
# The grid of parts of a photograph, with what each part has of the next one, and their width.
_JITTER, _MARGIN, _WIDTH = 0.04, 0.05, 160


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


def _write(image: Image.Image, text: str, place: tuple[float, float], color: str) -> bytes:
    image, size = image.copy(), image.width // 10
    at = image.width * place[0], image.height * place[1]
    ImageDraw.Draw(image).text(at, text, color, font_size=size, stroke_width=1)
    return _encode(image)


def _add_logo(image: Image.Image) -> bytes:
    image, side = image.copy(), image.width // 5
    ImageDraw.Draw(image).ellipse((8, 8, side, side), fill="red", outline="white", width=4)
    return _encode(image)


def _add_bar(image: Image.Image) -> bytes:
    image, sides = image.copy(), image.size
    ImageDraw.Draw(image).rectangle((0, sides[1] * 0.8, *sides), fill="black")
    return _encode(image)


COVERS = {
    "text over it": lambda image: _write(image, "SAMPLE 2024", (0.1, 0.5), "white"),
    "a logo in a corner": _add_logo,
    "a bar over a fifth": _add_bar,
    "a frame of 50": lambda image: _encode(ImageOps.expand(image, 50, "black")),
    "a date stamp": lambda image: _write(image, "2024 11 28", (0.4, 0.88), "orange"),
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
    start, used = time.perf_counter(), _count_processor_seconds()
    yield
    seconds, used = time.perf_counter() - start, _count_processor_seconds() - used
    print(f"  {what}: {seconds:.1f} s, {used:.1f} s of processor time", flush=True)


def _count_processor_seconds() -> float:
    """Returns those of this process, and of those that it has waited for."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(sum(resource.getrusage(kind)[:2]) for kind in kinds)


def write_images(images: Iterable[tuple[int, Mapping[int, bytes]]], folder: Path) -> Path:
    """Writes the copies of images as `NUMBER-EDIT.jpg`, 0 for the image itself; returns a list."""
    lines = ["image_uri,label"]
    for number, copies in images:
        for edit, data in copies.items():
            (folder / f"{number}-{edit}.jpg").write_bytes(data)
            lines.append(f"{number}-{edit}.jpg,photograph")
    listed = folder / "list.csv"
    listed.write_text("\n".join(lines))
    return listed


def make_edits(files: list[Path], num_edited: int) -> Iterator[tuple[int, dict[int, bytes]]]:
    """Yields photographs, with edits of the first ones.

    Each of the last fifty has one copy with something over it.
    """
    covers = [*COVERS.values()]
    for number, path in enumerate(files):
        image = Image.open(path).convert("RGB")
        written = {0: path.read_bytes()}
        if number < num_edited:
            written.update((n, edit(image)) for n, edit in enumerate(EDITS.values(), 1))
        if number >= len(files) - _COVERED:
            kind = number % len(covers)
            written[len(EDITS) + 1 + kind] = covers[kind](image)
        yield number, written


def make_pictures(files: list[Path], count: int) -> Iterator[tuple[int, dict[int, bytes]]]:
    """Yields parts of photographs, with an edit of some."""
    rng = np.random.default_rng(0)
    edits = [*EDITS.values(), *COVERS.values()]
    planted = {number: n % len(edits) for n, number in enumerate(_choose(count))}
    each = -(-count // len(files))
    rows = round((each * 4 / 3) ** 0.5)
    columns = -(-each // rows)
    for number in range(count):
        if number % each == 0:
            image = Image.open(files[number // each]).convert("RGB")
            width, height = image.width / columns, image.height / rows
        row, column = divmod(number % each, columns)
        left, top = np.array([column, row]) + rng.uniform(-_JITTER, _JITTER, 2)
        ends = np.array([left - _MARGIN, top - _MARGIN, left + 1 + _MARGIN, top + 1 + _MARGIN])
        box = (ends * ([width, height] * 2)).clip(0, [*image.size] * 2)
        sides = (_WIDTH, round(_WIDTH * height / width))
        part = np.array(image.resize(sides, Image.Resampling.BICUBIC, box=box).convert("HSV"))
        part[..., 0] += np.uint8(rng.integers(256))
        picture = Image.fromarray(part, "HSV").convert("RGB")
        written = {0: _encode(picture)}
        if number in planted:
            written[planted[number] + 1] = edits[planted[number]](picture)
        yield number, written


def _choose(count: int) -> list[int]:
    """Returns the numbers of the pictures that have a copy."""
    return sorted(random.Random(1).sample(range(count), min(_PLANTED, count // 4)))


def find_by_darkroom(records: Path, scratch: str) -> tuple[Pairs, int]:
    """Returns the correlation of each pair in a dataset, by the names of its images.

    It is None where the pixels of a pair were not compared. The number is that of the pairs of
    which they were.
    """
    index, compared = str(records / "index"), Counter[str]()

    class Counted(RecordPairs):
        def compare(self, one: np.ndarray, other: np.ndarray, before: int = 0) -> np.ndarray:
            compared["pairs"] += len(one)
            return super().compare(one, other, before)

    features = open_features(index, uses_cache=False)
    neighbours = None if features is None else find_neighbours(features)
    with open_database(scratch) as connection:
        create_index_view(connection, "records", index, scratch)
        match_decoded_copies(connection)
        create_near_pairs(connection, (str(records), index), neighbours, Counted)
        shown = connection.execute(_SHOWN).fetchall()
    pairs = {tuple(sorted(Path(uri).stem for uri in row[:2])): row[2] for row in shown}
    return pairs, compared["pairs"]


def count_found(pairs: Iterable[tuple[str, str]], source: Path) -> tuple[dict[str, float], list]:
    """Returns the share of each edit that is a pair with its original, and pairs of others.

    These have images of two photographs, as the numbers of photograph and edit.
    """
    planted = Counter(int(path.stem.split("-")[1]) for path in source.glob("*.jpg"))
    found, others = Counter[int](), []
    for pair in pairs:
        one, other = sorted(tuple(map(int, name.split("-"))) for name in pair)
        if one[0] != other[0]:
            others.append((one, other))
        elif one[1] == 0:
            found[other[1]] += 1
    names = enumerate([*EDITS, *COVERS], 1)
    return {name: found[n] / planted[n] for n, name in names if planted[n]}, others


def verify_planted(records: Path) -> tuple[int, int]:
    """Returns how many edits their pixels verify, each with its original, and of how many."""
    rows = read_index(str(records / "index"), ["row", "uri"]).to_pydict()
    places = {Path(uri).stem: row for row, uri in zip(rows["row"], rows["uri"], strict=True)}
    edits = [name for name in places if not name.endswith("-0")]
    originals = [f"{name.split('-')[0]}-0" for name in edits]
    ends = (np.array([places[name] for name in names]) for names in (originals, edits))
    found = RecordPairs(str(records), str(records / "index")).compare(*ends)
    return int(np.count_nonzero(found > 0)), len(edits)


def measure_dataset(listed: Path, records: Path, scratch: str) -> None:
    """Prints the share of the edits in a list that are verified pairs, and all other pairs."""
    if not records.exists():
        with _timed("conversion"):
            darkroom.convert(listed, records, accept="one_class")
        with _timed("features"):
            darkroom.embed(records)
    # Pairs that were compared before are known.
    os.environ["DARKROOM_CACHE"] = scratch
    with _timed("validation"):
        darkroom.validate(records)
    with _timed("all pairs"):
        pairs, compared = find_by_darkroom(records, scratch)
    images = len(listed.read_text().splitlines()) - 1
    print(f"  {compared:,} pairs compared, {compared / images:.2f} an image")
    verified = {pair: correlation for pair, correlation in pairs.items() if correlation}
    shares, others = count_found(verified, listed.parent)
    for name, share in shares.items():
        print(f"  {name:20} {share:.3f}")
    for what, names in (("mean", EDITS), ("mean, covered", COVERS)):
        if known := [shares[name] for name in names if name in shares]:
            print(f"  {what:20} {np.mean(known):.3f}")
    print("  possible: {:,} of {:,}".format(*verify_planted(records)))
    print(f"  {len(verified):,} verified pairs, {len(others)} of them of two photographs:")
    for pair in others[:50]:
        print("   ", *(f"{number}-{edit}" for number, edit in pair))
    print(f"  {len(pairs) - len(verified):,} pairs that are not verified")


def measure_features(folder: Path, num_edited: int) -> None:
    """Measures photographs with edits."""
    files = list_photographs(folder)
    print(f"{len(files):,} photographs, {num_edited:,} edited, by features and pixels")
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "source")
        source.mkdir()
        listed = write_images(make_edits(files, num_edited), source)
        measure_dataset(listed, Path(scratch, "records"), scratch)


def measure_pictures(folder: Path, count: int, keep: Path | None) -> None:
    """Measures parts of photographs."""
    print(f"{count:,} parts of photographs, by features and pixels")
    with tempfile.TemporaryDirectory() as scratch:
        kept = keep or Path(scratch)
        source = kept / "source"
        listed = source / "list.csv"
        if not listed.exists():
            source.mkdir(parents=True)
            write_images(make_pictures(list_photographs(folder), count), source)
        measure_dataset(listed, kept / "records", scratch)


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
    parser.add_argument("--pictures", type=int, help="so many parts of photographs instead")
    parser.add_argument("--keep", type=Path, help="folder that keeps the dataset of the parts")
    parser.add_argument("--kind", choices=["spread", "alike"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.kind:
        measure_hashes(arguments.kind, arguments.hashes)
        return
    if arguments.pictures:
        measure_pictures(arguments.photographs, arguments.pictures, arguments.keep)
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
