"""The last step of a conversion: rejects, labels and `dataset.json`.

On a store, the dataset then becomes that of the output in a single write. A reader finds the old
dataset or the new one, never a mix. Of two attempts that end at the same time, the store lets one
write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any

import PIL
import simplejpeg

from darkroom import storage
from darkroom.conversion.output import ownership
from darkroom.conversion.output.attempts import RECORD_FILE, Attempt
from darkroom.conversion.shards.shard import ShardReport
from darkroom.dataset import example, journal, labels, layout, rejects
from darkroom.dataset.checksums import FileSum, find_changed, read_sums, write_sidecars
from darkroom.dataset.commit import FORMAT_VERSION, Dataset, Shard, SplitShards, write_commit
from darkroom.dataset.layout import DATA_FOLDER, DATASET_FILE, Folders
from darkroom.dataset.manifest import Manifest, read_manifest
from darkroom.dataset.objects import ObjectCounts, add_objects
from darkroom.dataset.pointer import format_pointer
from darkroom.dataset.schema import Kind
from darkroom.errors import ChangedError, DataError, OutputError, StorageError
from darkroom.options.checks import DEFAULT_MAX_REJECTS
from darkroom.options.conversion import RecordOptions
from darkroom.runtime import by_name
from darkroom.targets.kind import find_kind

_FEATURE_TYPES = {Kind.INTEGER: "int64", Kind.FLOAT: "float", Kind.STRING: "bytes"}
_IMAGE_FEATURES = {
    example.IMAGE_ENCODED: "bytes",
    example.IMAGE_FORMAT: "bytes",
    example.IMAGE_HEIGHT: "int64",
    example.IMAGE_WIDTH: "int64",
    example.IMAGE_CHANNELS: "int64",
    example.IMAGE_FILENAME: "bytes",
    example.IMAGE_SOURCE_ID: "bytes",
    example.IMAGE_SHA256: "bytes",
}


@dataclass(frozen=True)
class Commit:
    """The last step of a conversion, run by a worker; see `__call__`.

    Attributes:
        attempt: Who writes, and where.
        options: How the records were made.
        max_rejects: Share of rejected rows over which nothing is committed.
    """

    attempt: Attempt
    options: RecordOptions
    max_rejects: float = 1

    def __call__(self, reports: Sequence[ShardReport]) -> None:
        """Writes rejects, label map and, unless too many rows were rejected, `dataset.json`.

        Args:
            reports: The outcome of every shard, in order.

        Raises:
            OutputError: A later attempt has taken the output, or has committed.
            StorageError: A shard is not as its worker wrote it. Or another run has replaced the
                dataset whose images were taken.
        """
        with storage.be_patient(self.options.store_patience_seconds):
            folders = self.attempt.folders
            self.attempt.check_current()
            manifest = read_manifest(folders.manifest)
            parts = [storage.join(folders.manifest_rejects, layout.REJECTS_FILE)]
            parts += [report.rejects for report in reports if report.rejected]
            lines, reject_sums = rejects.write_rejects(
                folders.rejects,
                parts,
                folders.find_part,
                has_objects=manifest.objects is not None,
            )
            label_text = labels.format_labels(manifest.labels)
            label_path = storage.join(folders.examples, layout.LABELS_FILE)
            storage.write_bytes(label_path, label_text.encode(), folders.find_part(label_path))
            dataset = _make_dataset(manifest, self.options, reports, lines, self.max_rejects)
            counts = dataset.rejected, dataset.rows, dataset.objects
            committed = dataset.written > 0 and not rejects.are_too_many(self.max_rejects, *counts)
            if committed:
                _check_files(folders, dataset, reports)
                for split in dataset.splits:
                    storage.sync_folder(storage.join(folders.examples, layout.split_folder(split)))
                storage.sync_folder(folders.index)
                index_sums = {
                    name: FileSum(report.index_bytes, report.index_sha256)
                    for name, report in zip(dataset.index_files, reports, strict=True)
                }
                contents = {
                    name: storage.read_bytes(storage.join(folders.manifest, name))
                    for name in layout.list_manifest_sidecars(folders.manifest)
                }
                if readers := self.attempt.describe:
                    contents |= by_name.find("build_sidecars")(readers, dataset, folders.index)
                sidecar_sums = write_sidecars(folders.examples, contents, folders.find_part)
                self.attempt.check_current()
                manifest.find_base()
                write_commit(folders, dataset, index_sums, reject_sums, sidecar_sums)
                if folders.examples != self.attempt.output:
                    _publish(self.attempt, dataset.fingerprint)
            # Last, so that a run that is killed before the commit can be resumed.
            ownership.end_attempt(folders, committed=committed)


def _publish(attempt: Attempt, fingerprint: str) -> None:
    """Makes a complete dataset that of an output on a store, then deletes the one it replaces.

    Raises:
        OutputError: Another attempt has done so since this one began.
        StorageError: The store has other bytes than were written.
    """
    output, data = attempt.output, attempt.folders.examples
    _check_written(data)
    own = data.rpartition("/")[2]
    # Before the commit that proves them is replaced.
    found = ownership.survey(Folders.of_dataset(output), without=own)
    path = storage.join(output, DATASET_FILE)
    text = format_pointer(own, fingerprint)
    try:
        storage.write_if_unchanged(path, text, attempt.record.replaces)
    except ChangedError as error:
        # The answer to an earlier try may have been lost.
        if path not in storage.match_pattern(path) or storage.read_bytes(path) != text:
            raise OutputError(
                f"Another run has written a dataset into {output} since this one began.",
                "That dataset stays. To replace it, run this again with overwrite (--overwrite).",
            ) from error
    by_folder: dict[str, list[str]] = {}
    for ours in found.ours:
        by_folder.setdefault(ours[len(output) + 1 :].partition("/")[0], []).append(ours)
    earlier = {folders.examples.rpartition("/")[2] for folders in attempt.earlier}
    for name, paths in by_folder.items():
        if name in earlier:
            # Workers of that attempt may still write. Its journal proves their files, so it is the
            # last to go, when they have written nothing for a whole run.
            last = {each for each in paths if each.endswith((journal.JOURNAL_FILE, RECORD_FILE))}
            storage.delete_files(each for each in paths if each not in last or last == {*paths})
        elif name not in (DATASET_FILE, layout.WORK_FOLDER) and not DATA_FOLDER.fullmatch(name):
            storage.delete_files(paths)
    ownership.remove_own_folders(output)


def _check_written(data: str) -> None:
    """Reads back what was written beside the shards.

    Raises:
        StorageError: The store has other bytes.
    """
    try:
        sums = read_sums(data)
        names = [name for name in sums if not name.startswith(layout.split_folder(""))]
        for name, what in find_changed(data, sums, names):
            raise DataError(f"{storage.join(data, name)} {what}.")
    except DataError as error:
        raise StorageError(
            f"Nothing was committed, because a file differs from what was written: {error.message}",
            "The store loses written data: check it. Run this again, to make the file again.",
        ) from error


def _check_files(folders: Folders, dataset: Dataset, reports: Sequence[ShardReport]) -> None:
    """Checks that shards and index are still as their workers wrote them.

    Raises:
        StorageError: A file is missing, or is another one.
    """
    names = [layout.split_folder(split) for split in dataset.splits]
    inside = {folders.index, *(storage.join(folders.examples, name) for name in names)}
    states = {
        storage.join(folder, name): state
        for folder in inside
        for name, state in storage.look_up_files(folder).items()
    }
    for report, name in zip(reports, dataset.index_files, strict=True):
        for path, size_bytes, version, sha256 in (
            (storage.join(folders.examples, report.file), *report.shard_state),
            (storage.join(folders.index, name), *report.index_state),
        ):
            found = states.get(path)
            # A worker that was started twice wrote the same bytes twice.
            if found is None or (
                found != (size_bytes, version)
                and (found.size_bytes != size_bytes or not storage.has_hash(path, sha256))
            ):
                raise StorageError(
                    f"{path} is not as its worker wrote it, so nothing was committed.",
                    f"Something else writes there, perhaps a worker of the same job, "
                    f"{folders.token}, that was given up. Stop it, and run this again.",
                )


def _make_dataset(
    manifest: Manifest,
    options: RecordOptions,
    reports: Sequence[ShardReport],
    lines: int,
    max_rejects: float,
) -> Dataset:
    """Returns the dataset of a manifest; its rejects have so many lines."""
    # With 1, as in pipelines, the checks judge the rejects.
    agreed = None if max_rejects in (DEFAULT_MAX_REJECTS, 1) else max_rejects
    splits = {}
    for split in manifest.splits:
        own = [report for report in reports if report.split == split]
        shards = tuple(Shard(r.file, r.records, r.size_bytes, r.sha256) for r in own)
        splits[split] = SplitShards(sum(shard.records for shard in shards), shards)
    objects = None
    if manifest.objects is not None:
        listed = replace(manifest.objects, written=0)
        written = (report.objects for report in reports)
        objects = ObjectCounts(*add_objects([astuple(listed), *written]))
    types = dict(_IMAGE_FEATURES) if manifest.has_images else {}
    types |= find_kind(manifest.target.kind).features if manifest.has_labels else {}
    types |= {name: _FEATURE_TYPES[Kind(kind)] for name, kind in manifest.inputs.items()}
    return Dataset(
        format_version=FORMAT_VERSION,
        fingerprint="",
        options=describe_options(manifest, options),
        checks=options.image_check,
        features={name: {"type": types[name]} for name in sorted(types)},
        labels=tuple(manifest.labels),
        rows=manifest.rows,
        written=sum(split.records for split in splits.values()),
        rejected=lines - (objects.alone if objects else 0),
        deduplicated=manifest.deduplicated,
        splits=splits,
        targets={"label": manifest.target},
        max_rejects=None if agreed is None else float(agreed),
        decisions=manifest.decisions,
        objects=objects,
    ).with_files()


def describe_options(manifest: Manifest, options: RecordOptions) -> dict[str, Any]:
    """Returns all that the bytes depend on; re-encoded images also on the codecs' versions.

    The version of the kind of target is left out where it is the first.
    """
    image, version = asdict(options.image), find_kind(manifest.target.kind).version
    return {
        "checks": image.pop("image_check"),
        **image,
        "compression": options.compression,
        "num_shards": options.shard_counts,
        "shard_bytes": options.shard_bytes,
        "seed": manifest.seed,
        "codecs": find_codecs(),
        **({} if version == 1 else {"target_version": version}),
    }


def find_codecs() -> dict[str, str]:
    """Returns the versions of the libraries that encode images."""
    return {"pillow": PIL.__version__, "simplejpeg": simplejpeg.__version__}
