"""What a verification finds: files that are missing, mixed up, damaged, or one too many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from darkroom import storage
from darkroom.audit.shards import ShardDigest, diagnose_shard
from darkroom.dataset.commit import Shard
from darkroom.runtime.text import MAX_LISTED_ROWS

MISSING, EXTRA, SWAPPED, RENAMED, DOUBLED = "missing", "extra", "swapped", "renamed", "doubled"
COMMIT, TABLE, UNREADABLE = "commit", "table", "unreadable"

RESTORE = "Restore this file from a copy, or convert the source again with --overwrite."
# Of a file that is not as it was written nothing proves that darkroom wrote it.
REWRITE = (
    "Restore this file from a copy, or delete it and convert the source again with --overwrite."
)
HINTS = {
    EXTRA: "Move it away: every file in a Split folder is read as data.",
    SWAPPED: "Exchange the names of the two files.",
    RENAMED: "Give it its own name again.",
    COMMIT: "Restore dataset.json from a copy, or delete it and convert the source again with "
    "--overwrite.",
    UNREADABLE: "Check the permissions and the disk, then verify again.",
}


@dataclass(frozen=True)
class Finding:
    """Something that is not as it was committed.

    Attributes:
        path: The file, relative to the dataset.
        kind: `missing`, `extra`, `swapped`, `renamed`, `doubled`, `truncated`, `too long`,
            `damaged`, `foreign` (shards), `commit` (dataset.json), `table` (what lies beside the
            shards) or `unreadable` (storage failed).
        what: What is wrong, to be read after the path.
        hint: What to do.
    """

    path: str
    kind: str
    what: str
    hint: str

    def __str__(self) -> str:
        return f"{self.path} {self.what}."


class TableError(Exception):
    """A file does not fit the dataset; its text says how, to be read after the path."""


def format_cause(error: Exception) -> str:
    """Returns the first line of what another library says."""
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def format_findings(findings: Sequence[Finding]) -> str:
    """Returns the first findings for a message, each on a line of its own."""
    lines = [f"\n  {finding}" for finding in findings[:MAX_LISTED_ROWS]]
    if len(findings) > MAX_LISTED_ROWS:
        lines.append(f"\n  ... and {len(findings) - MAX_LISTED_ROWS} more")
    return "".join(lines)


def compare_shards(
    root: str, expected: Mapping[str, Shard], digests: Mapping[str, ShardDigest | OSError]
) -> list[Finding]:
    """Returns what is wrong with the files of the splits, those that are missing first.

    Args:
        root: The dataset; a file that no other explains is read again to say what is wrong.
        expected: The shards that must be there, by file.
        digests: What was read, or why it was not, by file.
    """
    hashes = {
        file: "" if isinstance(digest, OSError) or not digest.size_bytes else digest.sha256
        for file, digest in digests.items()
    }
    whose = {shard.sha256: file for file, shard in reversed([*expected.items()]) if shard.bytes}
    findings = [
        _explain_missing(shard, hashes) for file, shard in expected.items() if file not in digests
    ]
    for file, digest in digests.items():
        shard = expected.get(file)
        if isinstance(digest, OSError):
            findings.append(explain_error(file, digest))
        elif shard is None:
            findings.append(_explain_extra(file, whose.get(hashes[file]), expected, hashes))
        elif digest.sha256 == shard.sha256:
            continue
        elif owner := whose.get(hashes[file]):
            findings.append(_explain_mixed(shard, expected[owner], hashes))
        else:
            findings.append(_diagnose(root, shard, digest.size_bytes))
    return findings


def _explain_missing(shard: Shard, hashes: Mapping[str, str]) -> Finding:
    if place := _find_content(shard, hashes):
        return Finding(shard.file, MISSING, f"is missing: its records are in {place}", RESTORE)
    return Finding(shard.file, MISSING, "is missing", RESTORE)


def explain_error(file: str, error: OSError) -> Finding:
    """Returns what an error on reading a file means for the dataset."""
    if isinstance(error, FileNotFoundError):
        return Finding(file, MISSING, "is missing", RESTORE)
    if isinstance(error, IsADirectoryError):
        return Finding(file, EXTRA, "is a folder, expected records", HINTS[EXTRA])
    return Finding(file, UNREADABLE, f"cannot be read: {error}", HINTS[UNREADABLE])


def _explain_extra(
    file: str, owner: str | None, expected: Mapping[str, Shard], hashes: Mapping[str, str]
) -> Finding:
    if owner is None:
        return Finding(file, EXTRA, "is not named by dataset.json", HINTS[EXTRA])
    if hashes.get(owner) == expected[owner].sha256:
        what = f"is a copy of {owner}, whose records would be read twice"
        return Finding(file, DOUBLED, what, HINTS[EXTRA])
    return Finding(file, RENAMED, f"holds the records of {owner}", f"Rename it to {owner}.")


def _explain_mixed(shard: Shard, owner: Shard, hashes: Mapping[str, str]) -> Finding:
    """Explains a shard that holds what another one should."""
    if hashes.get(owner.file) == shard.sha256:
        what = f"holds the records of {owner.file}, and that those of this one: they were swapped"
        return Finding(shard.file, SWAPPED, what, HINTS[SWAPPED])
    place = _find_content(shard, hashes)
    own = f"its own are in {place}" if place else "its own are nowhere"
    if hashes.get(owner.file) == owner.sha256:
        what = f"is a copy of {owner.file}, whose records would be read twice; {own}"
        return Finding(shard.file, DOUBLED, what, RESTORE)
    what = f"holds the records of {owner.file}; {own}"
    return Finding(shard.file, RENAMED, what, f"Rename it to {owner.file}.")


def _find_content(shard: Shard, hashes: Mapping[str, str]) -> str:
    """Returns the file that holds the records of a shard; empty when none does."""
    places = (file for file, sha256 in hashes.items() if sha256 == shard.sha256)
    return next(places, "") if shard.bytes else ""


def _diagnose(root: str, shard: Shard, size_bytes: int) -> Finding:
    try:
        kind, what = diagnose_shard(storage.join(root, shard.file), shard, size_bytes)
    except OSError as error:
        return explain_error(shard.file, error)
    return Finding(shard.file, kind, what, RESTORE)
