"""Beam: one element is the features of one shard, which its worker leaves in the dataset."""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterable
from functools import partial

import numpy as np

from darkroom import storage
from darkroom.conversion.beam.versions import check_versions, find_versions
from darkroom.conversion.shards.writing import name_errors
from darkroom.dataset.commit import Dataset
from darkroom.dataset.layout import FEATURES_FOLDER, Folders
from darkroom.errors import MissingExtraError, StorageError
from darkroom.features.cache import Array
from darkroom.features.compute import compute_part
from darkroom.features.networks.opening import open_network
from darkroom.images.views import load_opencv
from darkroom.runtime.plain_beam import beam

_Part = tuple[int, Array]


class ComputePartFn(beam.DoFn):
    """Computes features: (folder, (number of a shard, its records as bits)) -> nothing."""

    def __init__(self, dataset: Dataset, folders: Folders, model: str, identity: str) -> None:
        self._dataset, self._folders = dataset, folders
        self._model, self._identity = model, identity
        self._versions = find_versions()
        # The threads of a worker share one network.
        self._shared = beam.utils.shared.Shared()

    def setup(self) -> None:
        """Opens the network."""
        check_versions(self._versions)
        try:
            load_opencv()
            self._network = self._shared.acquire(partial(open_network, self._model))
        except MissingExtraError as error:
            # An engine passes on the message alone.
            raise MissingExtraError(
                f"A worker ({platform.node()}) cannot compute features: {error.message} The "
                "container image of the workers must have it.",
                error.hint,
            ) from error
        if self._network.identity != self._identity:
            raise StorageError(
                f"A worker ({platform.node()}) has another model as {self._model}.",
                "Have the same file where all machines reach it at this path.",
            )

    def process(self, found: tuple[str, Iterable[_Part]]) -> None:
        """Computes those of a shard that the folder does not have."""
        folder, parts = found
        for part in parts:
            with name_errors(folder):
                compute_part(self._dataset, self._folders, self._network, folder, *part)


class ComputeFeatures(beam.PTransform):
    """Computes features of some rows of an index; applied to the pipeline itself.

    Args:
        dataset: The commit.
        folders: Where its records and its index are.
        model: The model, where workers read it.
        identity: Its hash, as the client has it.
        rows: The places of the rows in the index.
    """

    def __init__(
        self, dataset: Dataset, folders: Folders, model: str, identity: str, rows: Collection[int]
    ) -> None:
        super().__init__()
        self._compute = ComputePartFn(dataset, folders, model, identity)
        place = storage.join(folders.examples, FEATURES_FOLDER, identity)
        wanted = np.zeros(dataset.written, bool)
        wanted[[*rows]] = True
        starts = np.cumsum([shard.records for shard in dataset.shards])[:-1]
        self.parts: dict[str, _Part] = {
            storage.join(place, f"{number:05d}"): (number, np.packbits(own))
            for number, own in enumerate(np.split(wanted, starts))
            if own.any()
        }

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """Returns an empty collection."""
        return (
            pipeline
            | "CreateTasks" >> beam.Create(self.parts.items(), reshuffle=False)
            | "SpreadTasks" >> beam.GroupByKey()
            | "ComputeParts" >> beam.ParDo(self._compute)
        )
