"""`darkroom.embed`: adds the features of its images to a dataset that exists."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from darkroom import storage
from darkroom.conversion.output import ownership
from darkroom.conversion.output.additions import add_sidecars
from darkroom.conversion.output.attempts import new_token, take
from darkroom.dataset import journal
from darkroom.dataset.checksums import read_sums, sum_bytes, write_sums
from darkroom.dataset.commit import Dataset, read_dataset
from darkroom.dataset.layout import FEATURES_FILE, SUMS_FILE, Folders
from darkroom.dataset.named import find_named
from darkroom.dataset.opening import check_index_files, check_unchanged, read_unchanged
from darkroom.dataset.pointer import find_data
from darkroom.errors import DataError, StorageError
from darkroom.features.compute import Counts, write_dataset_features
from darkroom.features.networks.network import Network
from darkroom.features.networks.opening import check_pretrained, open_network
from darkroom.features.opening import open_features
from darkroom.features.table import Features
from darkroom.options.training import EFFICIENTNET_LITE
from darkroom.runtime import progress
from darkroom.runtime.result import Fact, Outcome, Result
from darkroom.runtime.text import format_count

if TYPE_CHECKING:
    from darkroom.conversion.job import ConversionJob

_HINT = "Features are a file beside its index: use a copy that you may write."


@dataclass(frozen=True)
class Embedding(Result):
    """The features that `embed` wrote.

    Attributes:
        path: The table.
        model: Name and hash of the model.
        width: How many numbers each image has.
        images: Images that have features.
        computed: Those whose features the cache did not have.
        undecodable: Images that no decoder reads; they have none.
    """

    path: str
    model: str
    width: int
    images: int
    computed: int
    undecodable: int

    def describe(self) -> Outcome:
        """Returns what was computed."""
        images = format_count(self.images, "image")
        said = f"Features of {images}, {self.width:,} numbers each; {self.computed:,} computed now."
        return Outcome("Features", [said, Fact("Model", self.model), Fact("File", self.path)])


@storage.report_failures
@progress.shown
def embed(directory: str | os.PathLike[str], model: str = EFFICIENTNET_LITE) -> Embedding:
    """Computes features of the images of a dataset, as `features.parquet` beside its index.

    A network gets each image, stretched to its size: RGB from 0 to 255. Features are kept by the
    contents of images, in the cache that trainings have: what is known is not computed again, also
    after an update, or after a run that was killed.

    Args:
        directory: A folder that `darkroom.convert` wrote.
        model: `efficientnet-lite0` of the extra `pretrained`, or the path of a model of yours: a
            file of ONNX (`.onnx`) or Keras (`.keras`), or the folder of a SavedModel. It takes
            uint8 or float32, [N, height, width, 3] or [N, 3, height, width], and gives floats
            [N, D]; of [N, height, width, D] the mean is taken. It may be in a store.

    Returns:
        What was computed.

    Raises:
        UsageError: There is no such model, or it is not one from images to features.
        DataError: There is no dataset, it is damaged, or it was replaced meanwhile.
        MissingExtraError: What runs the model is not installed.
        OutputError: The dataset has a `features.parquet` that is not darkroom's, or another run
            writes there.
        OSError: A file cannot be read or written.
    """
    return _add_features(directory, model)


@contextmanager
def follow_with_features(job: ConversionJob) -> Iterator[None]:
    """Adds features to the dataset that a conversion makes, after the block that runs it.

    Those of unchanged images are taken from the dataset that an update starts from.

    Raises:
        MissingExtraError: What computes them is not installed; before a long conversion.
        DataError: The features of the earlier dataset are damaged.
    """
    check_pretrained()
    base = job.find_base()
    # Opened now: an update takes the table out of its folder.
    earlier = open_features(base.index, uses_cache=False) if base else None
    yield
    _add_features(job.output_dir, EFFICIENTNET_LITE, earlier)


def _add_features(
    directory: str | os.PathLike[str], model: str, earlier: Features | None = None
) -> Embedding:
    """Does what `embed` does, and takes features of the same images from an earlier dataset."""
    place = find_named(directory)

    def read() -> tuple[str, Dataset]:
        data = find_data(place)
        dataset = read_dataset(data)
        check_index_files(data, dataset)
        return data, dataset

    data, dataset = read_unchanged([place], read)
    if not storage.is_remote(data) and not os.access(storage.local_path(data), os.W_OK):
        # Before hours of computing.
        raise StorageError(f"{data} cannot be written.", _HINT)
    network, folders = open_network(model), Folders.of_dataset(data)
    with _compute(dataset, folders, network, earlier) as (contents, counts):
        add_sidecars(place, data, dataset, {FEATURES_FILE: contents}, _HINT)
    path = storage.join(data, FEATURES_FILE)
    return Embedding(path, network.model, network.width, *counts)


def embed_artifacts(dataset: Dataset, folders: Folders) -> None:
    """Adds features to the artifact of an index, which has a list of its own; see `embed`.

    A journal names the files, so that a run that is killed can be repeated.

    Args:
        dataset: The commit.
        folders: The folders of the artifacts of a pipeline, which nobody else writes.
    """
    table, list_of_sums = (storage.join(folders.index, name) for name in (FEATURES_FILE, SUMS_FILE))
    with _compute(dataset, folders, open_network(EFFICIENTNET_LITE)) as (contents, _):
        folders = replace(folders, token=new_token())
        take(folders)
        parts = map(folders.find_part, (table, list_of_sums))
        journal.write_journal(folders, {table, list_of_sums, *parts})
        storage.write_bytes(table, contents, folders.find_part(table))
        sums = {**read_sums(folders.index), FEATURES_FILE: sum_bytes(contents)}
        write_sums(folders.index, sums, folders.find_part(list_of_sums))
        ownership.end_attempt(folders, committed=True)


@contextmanager
def _compute(
    dataset: Dataset, folders: Folders, network: Network, earlier: Features | None = None
) -> Iterator[tuple[bytes, Counts]]:
    """Yields the bytes of the table, which are in a temporary file, and what was computed."""
    with tempfile.TemporaryFile(prefix="darkroom-") as file:
        try:
            counts = write_dataset_features(file, dataset, folders, network, earlier)
        except (DataError, OSError):
            check_unchanged({folders.examples: dataset})
            raise
        file.flush()
        # Used as bytes are, but never in memory as a whole.
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        yield cast(bytes, memoryview(mapped)), counts
