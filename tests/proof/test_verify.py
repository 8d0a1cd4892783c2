"""`darkroom.verify` finds every kind of damage, and names the file."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import os
import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from darkroom.cli import main
from darkroom.conversion.convert import convert
from darkroom.dataset.checksums import read_sums, sum_file, write_sums
from darkroom.dataset.tfrecord import read_records
from darkroom.errors import DataError
from darkroom.options.conversion import ConversionOptions
from darkroom.proof import shards
from darkroom.proof.verify import VerificationResult, verify

# Damages a dataset: takes its folder, random numbers, and another run over the same images; yields
# files of which at least one has to be named.
Damage = Callable[[Path, random.Random, Path], Iterable[str]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> SimpleNamespace:
    """Two runs over the same forty images with different seeds, one of them with a reject."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(5)
    rows = [("split", "image_uri", "label"), ("TRAIN", "gone.png", "cat")]
    for number in range(40):
        Image.fromarray(rng.integers(0, 256, (9, 7, 3), np.uint8)).save(folder / f"{number}.png")
        split = "VALIDATION" if number % 5 == 4 else "TRAIN"
        rows.append((split, f"{number}.png", ("cat", "dog", "owl")[number % 3]))
    with (folder / "images.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    for seed in range(2):
        convert(
            folder / "images.csv",
            folder / f"run-{seed}",
            num_shards={"train": 4, "eval": 2},
            seed=seed,
            max_rejects=1,
        )
    return SimpleNamespace(folder=folder, sound=folder / "run-0", other=folder / "run-1")


@pytest.fixture
def root(runs, tmp_path) -> Path:
    """A copy of a sound dataset."""
    return Path(shutil.copytree(runs.sound, tmp_path / "dataset"))


def _shards(root: Path) -> list[Path]:
    return sorted(root.glob("Split-*/*"))


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _pick(root: Path, rng: random.Random) -> Path:
    return rng.choice(_shards(root))


def _list_boundaries(path: Path) -> list[int]:
    """Returns where the records of a file start."""
    ends, place = [0], 0
    for record in read_records(str(path)):
        place += 12 + len(record) + 4
        ends.append(place)
    assert ends.pop() == path.stat().st_size
    return ends


def _flip(path: Path, place: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


def _flip_somewhere(path: Path, rng: random.Random) -> None:
    _flip(path, rng.randrange(path.stat().st_size), rng.randrange(8))


def _truncate(root, rng, other):
    path = _pick(root, rng)
    os.truncate(path, rng.randrange(path.stat().st_size))
    yield _name(root, path)


def _truncate_between_records(root, rng, other):
    path = _pick(root, rng)
    os.truncate(path, rng.choice(_list_boundaries(path)))
    yield _name(root, path)


def _flip_shard(root, rng, other):
    path = _pick(root, rng)
    _flip_somewhere(path, rng)
    yield _name(root, path)


def _flip_frame(root, rng, other):
    path = _pick(root, rng)
    _flip(path, rng.choice(_list_boundaries(path)) + rng.randrange(12), rng.randrange(8))
    yield _name(root, path)


def _write_over(root, rng, other):
    path = _pick(root, rng)
    data = bytearray(path.read_bytes())
    start = rng.randrange(len(data))
    length = rng.randrange(1, 512)
    data[start : start + length] = bytes(len(data[start : start + length]))
    path.write_bytes(data)
    yield _name(root, path)


def _append_bytes(root, rng, other):
    path = _pick(root, rng)
    path.write_bytes(path.read_bytes() + rng.randbytes(rng.randrange(1, 64)))
    yield _name(root, path)


def _cut_records(path: Path) -> list[bytes]:
    data, ends = path.read_bytes(), [*_list_boundaries(path), path.stat().st_size]
    return [data[start:stop] for start, stop in itertools.pairwise(ends)]


def _double_record(root, rng, other):
    path = _pick(root, rng)
    path.write_bytes(path.read_bytes() + rng.choice(_cut_records(path)))
    yield _name(root, path)


def _drop_record(root, rng, other):
    path = _pick(root, rng)
    records = _cut_records(path)
    del records[rng.randrange(len(records))]
    path.write_bytes(b"".join(records))
    yield _name(root, path)


def _exchange_records(root, rng, other):
    path = _pick(root, rng)
    records = _cut_records(path)
    one, two = rng.sample(range(len(records)), 2)
    records[one], records[two] = records[two], records[one]
    path.write_bytes(b"".join(records))
    yield _name(root, path)


def _swap(root, rng, other):
    one, two = rng.sample(_shards(root), 2)
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(data)
    yield from (_name(root, one), _name(root, two))


def _rename(root, rng, other):
    path = _pick(root, rng)
    new = path.with_name(f"data_tfrecord-{rng.randrange(90):05d}-of-00099")
    path.rename(new)
    yield from (_name(root, path), _name(root, new))


def _delete(root, rng, other):
    path = _pick(root, rng)
    path.unlink()
    yield _name(root, path)


def _delete_split(root, rng, other):
    folder = rng.choice(sorted(root.glob("Split-*")))
    names = [_name(root, path) for path in folder.iterdir()]
    shutil.rmtree(folder)
    yield from names


def _add_file(root, rng, other):
    path = _pick(root, rng).with_name(f"new-{rng.randrange(1000)}")
    path.write_bytes(rng.randbytes(rng.randrange(64)))
    yield _name(root, path)


def _add_split(root, rng, other):
    path = root / f"Split-{rng.randrange(1000)}" / "data_tfrecord-00000-of-00001"
    path.parent.mkdir()
    shutil.copy(_pick(other, rng), path)
    yield _name(root, path)


def _double(root, rng, other):
    path = _pick(root, rng)
    copy = path.with_name(f"data_tfrecord-{rng.randrange(90):05d}-of-00099")
    shutil.copy(path, copy)
    yield _name(root, copy)


def _copy_over(root, rng, other):
    one, two = rng.sample(_shards(root), 2)
    shutil.copy(one, two)
    yield _name(root, two)


def _take_from_other_run(root, rng, other):
    path = _pick(other, rng)
    shutil.copy(path, root / _name(other, path))
    yield _name(other, path)


def _flip_file(pattern: str) -> Damage:
    def damage(root, rng, other):
        path = rng.choice(sorted(root.glob(pattern)))
        _flip_somewhere(path, rng)
        yield _name(root, path)

    return damage


def _flip_sums(root, rng, other):
    _flip_somewhere(root / "SHA256SUMS", rng)
    yield "SHA256SUMS"


def _list_beside(root: Path) -> list[Path]:
    paths = (path for path in root.rglob("*") if path.is_file())
    return sorted(path for path in paths if "Split-" not in _name(root, path))


def _truncate_beside(root, rng, other):
    path = rng.choice(_list_beside(root))
    os.truncate(path, rng.randrange(path.stat().st_size))
    yield _name(root, path)


def _delete_beside(root, rng, other):
    path = rng.choice(_list_beside(root))
    path.unlink()
    yield _name(root, path)


def _empty_beside(root, rng, other):
    path = rng.choice(_list_beside(root))
    path.write_bytes(b"")
    yield _name(root, path)


def _replace_beside(root, rng, other):
    # The labels of both runs are the same, and so are their rejects.
    names = [_name(root, path) for path in _list_beside(root)]
    name = rng.choice([n for n in names if not n.startswith(("labels", "rejects"))])
    shutil.copy(other / name, root / name)
    # Of a commit and a list of hashes that do not fit, either may be of the other run.
    yield from ({name, "dataset.json"} if name == "SHA256SUMS" else {name, "SHA256SUMS"})


def _add_empty_split(root, rng, other):
    (root / "Split-foo").mkdir()
    yield "Split-foo"


def _delete_index(root, rng, other):
    names = [_name(root, path) for path in (root / "index").iterdir()]
    shutil.rmtree(root / "index")
    yield from names


def _swap_index(root, rng, other):
    one, two = rng.sample(sorted(root.glob("index/index-*")), 2)
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(data)
    yield from (_name(root, one), _name(root, two))


def _take_index_from_other_run(root, rng, other):
    shutil.rmtree(root / "index")
    shutil.copytree(other / "index", root / "index")
    yield from (_name(root, path) for path in root.glob("index/*"))


DAMAGES: dict[str, Damage] = {
    "shard cut anywhere": _truncate,
    "shard cut between two records": _truncate_between_records,
    "bit flipped in a shard": _flip_shard,
    "bit flipped in a record's header": _flip_frame,
    "zeros written over a part": _write_over,
    "bytes appended to a shard": _append_bytes,
    "record doubled": _double_record,
    "record dropped": _drop_record,
    "two records exchanged": _exchange_records,
    "two shards swapped": _swap,
    "shard renamed": _rename,
    "shard deleted": _delete,
    "split deleted": _delete_split,
    "file added to a split": _add_file,
    "split added": _add_split,
    "shard doubled": _double,
    "shard copied over another": _copy_over,
    "shard of another run": _take_from_other_run,
    "bit flipped in dataset.json": _flip_file("dataset.json"),
    "bit flipped in labels.txt": _flip_file("labels.txt"),
    "bit flipped in the index": _flip_file("index/index-*"),
    "bit flipped in the list of hashes": _flip_sums,
    "bit flipped in rejects.parquet": _flip_file("rejects.parquet"),
    "bit flipped in rejects.jsonl": _flip_file("rejects.jsonl"),
    "file beside the shards cut": _truncate_beside,
    "file beside the shards deleted": _delete_beside,
    "file beside the shards emptied": _empty_beside,
    "file beside the shards of another run": _replace_beside,
    "index deleted": _delete_index,
    "empty split added": _add_empty_split,
    "two index files swapped": _swap_index,
    "index of another run": _take_index_from_other_run,
}


def _snapshot(root: Path) -> dict[str, bytes | None]:
    """Returns the bytes of every file; None for a folder."""
    return {
        _name(root, path): path.read_bytes() if path.is_file() else None for path in root.rglob("*")
    }


def _is_named(result: VerificationResult, names: Iterable[str]) -> bool:
    return not {finding.path for finding in result.findings}.isdisjoint(names)


def _is_seen_by_plain_reading(root: Path) -> bool:
    """Tells whether reading all files of the splits with their checksums fails."""
    try:
        for path in _shards(root):
            for _ in read_records(str(path)):
                pass
    except DataError:
        return True
    return False


@pytest.mark.parametrize("kind", DAMAGES)
def test_every_damage_is_found_and_named(kind, runs, tmp_path):
    rng = random.Random(kind)
    for _ in range(2):
        root = Path(shutil.copytree(runs.sound, tmp_path / "dataset"))
        names = set(DAMAGES[kind](root, rng, runs.other))
        result = verify(root, num_threads=1)
        assert result.is_damaged
        assert _is_named(result, names), (names, result.findings)
        shutil.rmtree(root)


@pytest.mark.long
def test_thousands_of_damages(runs, tmp_path, capsys):
    """Prints how many of each kind were tried, found, and missed by a reader without the commit.

    Such a reader reads the shards only.
    """
    lines = ["| damage | tried | found and named | missed by plain reading |"]
    missed_by_us: list[tuple[str, int]] = []
    lines.append("| --- | ---: | ---: | ---: |")
    all_tries = all_found = 0
    tries = int(os.environ.get("DARKROOM_DAMAGES", "500"))
    for kind, damage in DAMAGES.items():
        rng = random.Random(kind)
        found = missed = touched = 0
        for number in range(tries):
            root = Path(shutil.copytree(runs.sound, tmp_path / "dataset"))
            before = _snapshot(root)
            names = set(damage(root, rng, runs.other))
            now, result = _snapshot(root), verify(root, num_threads=1)
            # Zeros over zeros change nothing.
            is_right = result.is_sound if now == before else _is_named(result, names)
            found += is_right
            if not is_right:
                missed_by_us.append((kind, number))
            # What plain reading reads: the files of the splits.
            touched += any(
                now.get(name) != before.get(name)
                for name in {*now, *before}
                if name.startswith("Split-") and "/" in name
            )
            missed += not _is_seen_by_plain_reading(root)
            shutil.rmtree(root)
        plain = f"{missed:,}" if touched else "not read"
        lines.append(f"| {kind} | {tries:,} | {found:,} | {plain} |")
        all_tries, all_found = all_tries + tries, all_found + found
    lines.append(f"| all | {all_tries:,} | {all_found:,} | |")
    with capsys.disabled():
        print("\n" + "\n".join(lines))
    assert missed_by_us == []


def test_a_sound_dataset_is_read_whole(root):
    result = verify(root)
    assert result.findings == ()
    assert result.is_sound
    assert not result.is_damaged
    assert (result.files, result.records) == (6, 40)
    assert result.bytes == sum(path.stat().st_size for path in _shards(root))
    assert (result.has_index, result.has_rejects) == (True, True)
    assert result.fingerprint == json.loads((root / "dataset.json").read_text())["fingerprint"]


def test_a_cut_anywhere_is_a_truncation_at_that_place(root):
    rng = random.Random(0)
    for path in _shards(root)[::3]:
        data, boundaries = path.read_bytes(), _list_boundaries(path)
        for size in {*boundaries, *rng.sample(range(len(data)), 2)}:
            path.write_bytes(data[:size])
            [found] = verify(root).findings
            assert (found.path, found.kind) == (_name(root, path), "truncated")
            if not size:
                assert found.what == f"is empty, expected {len(data):,} bytes"
                continue
            whole = sum(end <= size for end in boundaries) - 1
            assert f"{size:,} bytes of {len(data):,}: after {whole} whole records of" in found.what
            cut = "it ends between two records" if size in boundaries else "the file ends within"
            assert cut in found.what
        path.write_bytes(data)
    assert verify(root).is_sound


def test_a_flipped_bit_is_located_by_the_checksum_of_its_record(root):
    path = _shards(root)[2]
    starts = _list_boundaries(path)
    for place, what in ((starts[3] + 5, "length"), (starts[3] + 300, "data")):
        _flip(path, place, 3)
        [found] = verify(root).findings
        assert (found.path, found.kind) == (_name(root, path), "damaged")
        assert f"after 3 whole records of {len(starts)}, record 3 is damaged" in found.what
        assert f"the checksum of its {what} is wrong" in found.what
        _flip(path, place, 3)


def test_shards_that_were_mixed_up_are_recognised(root):
    one, two, three, *_ = _shards(root)
    data = [path.read_bytes() for path in (one, two, three)]
    names = [_name(root, path) for path in (one, two, three)]

    def find(*contents: bytes | None) -> dict[str, tuple[str, str]]:
        for path, content in zip((one, two, three), contents, strict=True):
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content)
        return {found.path: (found.kind, found.what) for found in verify(root).findings}

    swapped = find(data[1], data[0], data[2])
    assert [swapped.pop(name)[0] for name in names[:2]] == ["swapped", "swapped"]
    assert swapped == {}

    doubled = find(data[1], data[1], data[2])
    assert list(doubled) == [names[0]]
    assert doubled[names[0]][0] == "doubled"
    assert f"copy of {names[1]}" in doubled[names[0]][1]
    assert "its own records are missing" in doubled[names[0]][1]

    turned = find(data[1], data[2], data[0])
    assert {name: kind for name, (kind, _) in turned.items()} == dict.fromkeys(names, "renamed")

    moved = find(None, data[0], data[2])
    assert moved[names[0]] == ("missing", f"is missing: its records are in {names[1]}")
    assert moved[names[1]][0] == "renamed"
    assert len(moved) == 2

    (root / "Split-train" / "more").write_bytes(data[0])
    more = find(*data)
    assert more == {
        "Split-train/more": (
            "doubled",
            f"is a copy of {names[0]}, so its records would be read twice",
        )
    }


def test_all_findings_are_reported_at_once(root):
    first, second, third, fourth, *_ = _shards(root)
    os.truncate(first, 10)
    _flip(second, 40, 1)
    third.unlink()
    fourth.with_name("x").touch()
    (root / "labels.txt").write_text("cat\ndog\nowl\n\n")
    (root / "index" / "index-00000-of-00006.parquet").unlink()
    (root / "rejects.jsonl").write_text("")
    named = {(found.path, found.kind) for found in verify(root).findings}
    assert named == {
        (_name(root, first), "truncated"),
        (_name(root, second), "damaged"),
        (_name(root, third), "missing"),
        (_name(root, fourth.with_name("x")), "extra"),
        ("labels.txt", "table"),
        ("index/index-00000-of-00006.parquet", "missing"),
        ("rejects.jsonl", "table"),
    }


def test_index_and_rejects_may_be_elsewhere_as_in_tfx(root):
    """Then the list of hashes does not name them; see the test of the component."""
    shutil.rmtree(root / "index")
    for name in ("rejects.parquet", "rejects.jsonl"):
        (root / name).unlink()
    sums = read_sums(str(root))
    write_sums(str(root), {n: sums[n] for n in sums if not n.startswith(("index/", "rejects."))})
    result = verify(root)
    assert result.is_sound
    assert (result.has_index, result.has_rejects) == (False, False)


def test_without_a_valid_list_of_hashes_rejects_are_not_said_to_be_checked(root):
    (root / "SHA256SUMS").write_bytes(b"")
    (root / "rejects.jsonl").write_bytes(b"")
    result = verify(root)
    assert [finding.path for finding in result.findings] == ["SHA256SUMS"]
    assert (result.has_index, result.has_rejects) == (True, False)


def test_an_index_of_other_records_is_found_whatever_its_hashes(root, runs):
    """The index of another run has the right counts, but lists other records."""
    sums = read_sums(str(root))
    for path in (runs.other / "index").glob("index-*"):
        shutil.copy(path, root / "index")
        sums[f"index/{path.name}"] = sum_file(str(path))
    write_sums(str(root), sums)
    findings = verify(root).findings
    assert {found.path.partition("/")[0] for found in findings} == {"index"}
    assert all("does not match the records of" in found.what for found in findings)


@pytest.mark.parametrize("block_bytes", [64, 1000, 1 << 20])
def test_records_are_compared_with_the_index_across_blocks(root, block_bytes, monkeypatch):
    monkeypatch.setattr(shards, "_BLOCK_BYTES", block_bytes)
    path = str(_shards(root)[0])
    records = list(read_records(path))
    entries = [(record[200:240], record[-30:]) for record in records]
    digest = shards.digest_shard(path, entries)
    assert digest.misfits == ()
    assert digest.sha256 == hashlib.sha256(Path(path).read_bytes()).hexdigest()
    for number in range(len(records)):
        wrong = [*entries]
        wrong[number] = (entries[number][0], b"not in this record")
        assert shards.digest_shard(path, wrong).misfits == (number,)


def test_a_very_large_record_is_skipped_in_bounded_memory(root, monkeypatch):
    monkeypatch.setattr(shards, "_BLOCK_BYTES", 100)
    monkeypatch.setattr(shards, "_KEPT_BYTES", 200)
    path = _shards(root)[0]
    digest = shards.digest_shard(str(path), [(b"nowhere",)] * 99)
    assert digest.misfits == ()
    assert digest.size_bytes == path.stat().st_size


def test_a_compressed_dataset_is_verified(runs, tmp_path):
    convert(
        runs.folder / "images.csv",
        tmp_path / "out",
        max_rejects=1,
        options=ConversionOptions(compression="gzip"),
    )
    assert verify(tmp_path / "out").is_sound
    path = _shards(tmp_path / "out")[0]
    data = path.read_bytes()
    for damaged, kind in (
        (data[:-20], "truncated"),
        (data + b"\0", "too long"),
        (data[:99] + bytes([data[99] ^ 1]) + data[100:], "damaged"),
    ):
        path.write_bytes(damaged)
        [found] = verify(tmp_path / "out").findings
        assert (found.path, found.kind) == (_name(tmp_path / "out", path), kind)


def test_records_without_images_are_verified(tmp_path):
    (tmp_path / "rows.csv").write_text("split,height\n" + "TRAIN,3\n" * 5)
    convert(
        tmp_path / "rows.csv", tmp_path / "out", columns={"split": "split", "height": "integer"}
    )
    assert verify(tmp_path / "out").is_sound


def test_a_folder_or_a_fifo_in_place_of_a_shard_is_found(root):
    first, second, *_ = _shards(root)
    for path in (first, second):
        path.unlink()
    first.mkdir()
    os.mkfifo(second)
    assert [found.path for found in verify(root).findings] == [
        _name(root, first),
        _name(root, second),
    ]


def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_checked(root, monkeypatch, capsys):
    first, second, *_ = _shards(root)

    from darkroom import storage

    open_read = storage.open_read

    def refuse(path: str):
        if path == str(first):
            raise PermissionError(13, "Permission denied", path)
        return open_read(path)

    monkeypatch.setattr(storage, "open_read", refuse)
    result = verify(root)
    assert [found.kind for found in result.findings] == ["unreadable"]
    assert (result.is_sound, result.is_damaged) == (False, False)
    assert main(["verify", str(root), "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert "Permission denied" in error["message"]

    second.unlink()
    assert {found.kind for found in verify(root).findings} == {"unreadable", "missing"}
    assert main(["verify", str(root)]) == 1


def test_the_exit_code_is_0_for_a_sound_dataset(root, capsys):
    assert main(["verify", str(root)]) == 0
    out, _ = capsys.readouterr()
    assert out.splitlines()[0].startswith("Read       6 shards, ")
    assert out.splitlines()[-1] == f"Dataset    {root} is sound"
    assert main(["verify", str(root), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["sound"], found["findings"], found["files"]) == (True, [], 6)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.9, "2,500,000 bytes in 0.9 s"), (2.0, "2,500,000 bytes in 2.0 s (1.2 MB/s)")],
)
def test_a_speed_is_shown_only_after_a_second(seconds, said):
    result = VerificationResult("data", (), "f" * 64, 40, 1, 2_500_000, seconds)
    assert result.to_text().splitlines()[0] == f"Read       1 shard, {said}"


def test_the_exit_code_is_1_for_a_damaged_dataset_with_all_findings(root, capsys):
    path = _shards(root)[0]
    os.truncate(path, 5)
    assert main(["verify", str(root), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["sound"] is False
    [finding] = found["findings"]
    assert finding["path"] == _name(root, path)
    assert found["error"] == {
        "code": "data",
        "message": f"Found in {root}:\n  {finding['path']} {finding['what']}.",
        "hint": finding["hint"],
    }
    assert main(["verify", str(root)]) == 1
    out, _ = capsys.readouterr()
    assert out.splitlines()[0].startswith(f"truncated  {_name(root, path)} has 5 bytes of ")
    assert out.splitlines()[-1] == f"Dataset    {root} is DAMAGED"


def test_a_stray_file_is_not_counted_as_a_shard(root):
    before = verify(root)
    (root / "Split-train/notes.txt").write_text("mine")
    after = verify(root)
    assert [finding.path for finding in after.findings] == ["Split-train/notes.txt"]
    assert (after.files, after.bytes) == (before.files, before.bytes)


def test_the_exit_code_is_1_without_a_dataset(tmp_path, capsys):
    assert main(["verify", str(tmp_path), "--json"]) == 1
    [finding] = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["path"], finding["kind"]) == ("dataset.json", "commit")
    assert finding["what"] == f"is missing, so {tmp_path} is not a dataset"


def test_a_folder_of_other_files_is_not_called_damaged(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for path in (tmp_path, tmp_path / "notes.txt"):
        result = verify(path)
        assert "DAMAGED" not in result._repr_html_() + result.to_text()
        assert ">This is not a dataset<" in result._repr_html_()
        assert f"dataset.json is missing, so {path} is not a dataset." in result.to_text()


@pytest.mark.crosses
def test_an_unfinished_conversion_is_named_as_such(root, tmp_path):
    from darkroom.audit.contact_sheet import inspect

    shutil.copytree(root, tmp_path / "out")
    (tmp_path / "out/dataset.json").unlink()
    (tmp_path / "out/.attempt").mkdir()
    hint = "A conversion into it was begun and has not finished: run it again."
    limit = " If rejects.jsonl there lists too much, fix it first, or allow more with max_rejects "
    for said in (f"{hint}{limit}(--max-rejects).", hint):
        [finding] = verify(tmp_path / "out").findings
        assert finding.hint == said
        with pytest.raises(DataError, match="is not a dataset") as caught:
            inspect(tmp_path / "out", output_dir=tmp_path / "look")
        assert caught.value.hint == said
        (tmp_path / "out/rejects.jsonl").unlink(missing_ok=True)


@pytest.mark.crosses
def test_inspect_rejects_shards_that_are_not_in_the_commit(root, tmp_path):
    from darkroom.audit.contact_sheet import inspect

    _shards(root)[0].with_name("more").touch()
    with pytest.raises(DataError, match="does not name"):
        inspect(root, output_dir=tmp_path / "look")
