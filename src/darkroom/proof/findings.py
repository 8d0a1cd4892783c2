"""The findings of verification: files that are missing, extra, mixed up or damaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from darkroom import storage
from darkroom.dataset.checksums import IS_MISSING
from darkroom.dataset.commit import Shard
from darkroom.dataset.layout import DATASET_FILE
from darkroom.errors import DamagedFileError, DataError
from darkroom.proof.shards import DAMAGED, ShardDigest, diagnose_shard
from darkroom.runtime.text import MAX_LISTED_ROWS

MISSING, EXTRA, SWAPPED, RENAMED, DOUBLED = "missing", "extra", "swapped", "renamed", "doubled"
COMMIT, TABLE, UNREADABLE = "commit", "table", "unreadable"

RESTORE = "Restore this file from a copy, or convert the source again with --overwrite."
# --overwrite does not replace a changed file: nothing proves that darkroom wrote it.
REWRITE = (
    "Restore this file from a copy, or delete it and convert the source again with --overwrite."
)
FILE_HINTS = {
    EXTRA: "Move it elsewhere: every file in a Split folder is read as data.",
    SWAPPED: "Swap the names of the two files.",
    RENAMED: "Give the file its own name again.",
    COMMIT: "Restore dataset.json from a copy, or delete it and convert the source again with "
    "--overwrite.",
    UNREADABLE: "Check the permissions and the disk, then verify again.",
}


@dataclass(frozen=True)
class FileFinding:
    """A file of a dataset that is not as it was committed.

    Attributes:
        path: The file, relative to the dataset.
        kind: `missing`, `extra`, `swapped`, `renamed`, `doubled`, `truncated`, `too long`,
            `damaged`, `foreign` (shards), `commit` (dataset.json), `table` (all other files) or
            `unreadable` (the file cannot be read).
        what: The problem; a sentence when it follows the path.
        hint: What to do.
    """

    path: str
    kind: str
    what: str
    hint: str

    def __str__(self) -> str:
        return f"{self.path} {self.what}."


def format_findings(findings: Sequence[FileFinding]) -> str:
    """Returns the first ten findings for a message, each on its own line."""
    lines = [f"\n  {finding}" for finding in findings[:MAX_LISTED_ROWS]]
    if len(findings) > MAX_LISTED_ROWS:
        lines.append(f"\n  ... and {len(findings) - MAX_LISTED_ROWS} more")
    return "".join(lines)


def compare_shards(
    root: str, expected: Mapping[str, Shard], digests: Mapping[str, ShardDigest | OSError]
) -> list[FileFinding]:
    """Returns the problem with the files of the splits, missing files first.

    Args:
        root: The dataset. A file with unknown content is read again, to find the problem.
        expected: The shards of the commit, by file.
        digests: Digest of each file that exists, or the error on reading it.
    """
    hashes = {
        file: "" if isinstance(digest, OSError) or not digest.size_bytes else digest.sha256
        for file, digest in digests.items()
    }
    owners = {shard.sha256: file for file, shard in reversed([*expected.items()]) if shard.bytes}
    findings = []
    for file, shard in expected.items():
        if file not in digests:
            place = _find_content(shard, hashes)
            what = f"is missing: its records are in {place}" if place else "is missing"
            findings.append(FileFinding(file, MISSING, what, RESTORE))
    for file, digest in digests.items():
        own = expected.get(file)
        if isinstance(digest, OSError):
            findings.append(explain_error(file, digest))
        elif own is None:
            findings.append(_explain_extra(file, owners.get(hashes[file]), expected, hashes))
        elif digest.sha256 == own.sha256:
            if digest.size_bytes != own.bytes:
                what = f"says that {file} has {own.bytes:,} bytes; it has {digest.size_bytes:,}"
                findings.append(FileFinding(DATASET_FILE, COMMIT, what, FILE_HINTS[COMMIT]))
        elif owner := owners.get(hashes[file]):
            findings.append(_explain_mixed(own, expected[owner], hashes))
        else:
            try:
                kind, what = diagnose_shard(storage.join(root, file), own, digest.size_bytes)
                findings.append(FileFinding(file, kind, what, REWRITE))
            except OSError as error:
                findings.append(explain_error(file, error))
    return findings


def explain_commit(root: str, error: DataError) -> FileFinding:
    """Returns the finding for a folder whose commit cannot be used, because of an error."""
    what = f"{IS_MISSING}, so {root} is not a dataset"
    if storage.exists(storage.join(root, DATASET_FILE)):
        what = f"is not valid: {error.message.rstrip('.')}"
    return FileFinding(DATASET_FILE, COMMIT, what, error.hint)


def is_missing_commit(finding: FileFinding) -> bool:
    """Tells whether a finding is that there is not a dataset, rather than a damaged one."""
    return finding.path == DATASET_FILE and finding.what.startswith(IS_MISSING)


def explain_change(file: str, what: str, hint: str = "") -> FileFinding:
    """Returns the finding for a file beside the shards that is not as it was committed."""
    if what == IS_MISSING:
        return FileFinding(file, MISSING, what, hint or RESTORE)
    return FileFinding(file, TABLE, what, hint or REWRITE)


def explain_error(file: str, error: OSError) -> FileFinding:
    """Returns the finding for an error on reading a file."""
    if isinstance(error, FileNotFoundError):
        return FileFinding(file, MISSING, "is missing", RESTORE)
    if isinstance(error, IsADirectoryError):
        return FileFinding(
            file, EXTRA, "is a folder, expected a file of records", FILE_HINTS[EXTRA]
        )
    if isinstance(error, DamagedFileError):
        return FileFinding(file, DAMAGED, f"cannot be read: {error.message.rstrip('.')}", REWRITE)
    return FileFinding(file, UNREADABLE, f"cannot be read: {error}", FILE_HINTS[UNREADABLE])


def _explain_extra(
    file: str, owner: str | None, expected: Mapping[str, Shard], hashes: Mapping[str, str]
) -> FileFinding:
    """Returns the finding for a file that the commit does not name.

    `owner` is the file of the shard whose bytes it has; None if it has those of none.
    """
    if owner is None:
        return FileFinding(file, EXTRA, "is not named by dataset.json", FILE_HINTS[EXTRA])
    if hashes.get(owner) == expected[owner].sha256:
        what = f"is a copy of {owner}, so its records would be read twice"
        return FileFinding(file, DOUBLED, what, FILE_HINTS[EXTRA])
    return FileFinding(file, RENAMED, f"contains the records of {owner}", f"Rename it to {owner}.")


def _explain_mixed(shard: Shard, owner: Shard, hashes: Mapping[str, str]) -> FileFinding:
    """Returns the finding for a shard with the records of another shard, its owner."""
    if hashes.get(owner.file) == shard.sha256:
        what = f"and {owner.file} were swapped: each contains the records of the other"
        return FileFinding(shard.file, SWAPPED, what, FILE_HINTS[SWAPPED])
    place = _find_content(shard, hashes)
    own = f"its own records are in {place}" if place else "its own records are missing"
    if hashes.get(owner.file) == owner.sha256:
        what = f"is a copy of {owner.file}, so its records would be read twice; {own}"
        return FileFinding(shard.file, DOUBLED, what, REWRITE)
    what = f"contains the records of {owner.file}; {own}"
    return FileFinding(shard.file, RENAMED, what, f"Rename it to {owner.file}.")


def _find_content(shard: Shard, hashes: Mapping[str, str]) -> str:
    """Returns the file that contains the records of a shard; empty if none does."""
    places = (file for file, sha256 in hashes.items() if sha256 == shard.sha256)
    return next(places, "") if shard.bytes else ""
