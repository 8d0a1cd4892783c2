"""Checks that the outputs of an earlier run still have all their files, as they were written.

TFX takes them from its cache when their folders exist. But a cleaner of temporary files removes
files and leaves folders, a disk damages them, and a pushed model is also outside its artifact. So
the hashes of a node's outputs are kept, outside of the artifact. A model's graph and a dataset's
commit list their files, so a single missing file is found also where no hashes were kept.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from absl import logging
from tfx.types import standard_artifacts
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

from darkroom import storage
from darkroom.components.pusher.saved_model import check_saved_model
from darkroom.components.system_artifacts import ClassificationMetrics
from darkroom.dataset.checksums import find_changed, read_sums, sum_file, write_sums
from darkroom.dataset.commit import find_dataset
from darkroom.dataset.layout import SUMS_FILE, split_folder
from darkroom.dataset.opening import check_shard_files
from darkroom.errors import DataError, StorageError

_STANDARD = frozenset(
    getattr(each, "TYPE_NAME", None) for each in vars(standard_artifacts).values()
)
# Files that TensorFlow writes into the folder of a model.
_SAVED_MODEL_NAMES = {"saved_model.pb", "fingerprint.pb", "variables", "assets"}
# Of the hashes, beside TFX's own files about the executions of a node.
_FOLDER = (".system", "darkroom_outputs")


def check_outputs(outputs: Mapping[str, Sequence[Artifact]]) -> None:
    """Checks outputs before they are reused; replaces TFX's `verify_artifacts`.

    Args:
        outputs: Artifacts by output.

    Raises:
        RuntimeError: Files of an artifact are gone or changed, so the node has to run again.
        OSError: A place cannot be read.
    """
    for artifact in itertools.chain(*outputs.values()):
        places = list(_list_places(artifact))
        for place in places:
            is_there = storage.exists if _may_be_empty(artifact) else storage.has_files
            if not is_there(place):
                raise RuntimeError(f"{place} has no files")
            try:
                # The files of a model or a dataset are checked against its list.
                kind = artifact.type_name
                if kind == standard_artifacts.PushedModel.TYPE_NAME:
                    _check_model(place)
                elif kind == standard_artifacts.Model.TYPE_NAME:
                    _check_model(path_utils.serving_model_dir(place))
                elif kind == standard_artifacts.Examples.TYPE_NAME and (
                    dataset := find_dataset(place)
                ):
                    check_shard_files(place, dataset)
            except (DataError, StorageError) as error:
                raise RuntimeError(error.message) from error
        try:
            # A place below the artifact is covered by the artifact.
            outside = [place for place in places if not place.startswith(artifact.uri)]
            damage = _find_damage(artifact.uri, outside)
        except DataError as error:
            raise RuntimeError(error.message) from error
        if damage:
            raise RuntimeError(damage)


def _check_model(folder: str) -> None:
    """Checks a SavedModel; a `run_fn` of the user's may export a model in another form."""
    if _SAVED_MODEL_NAMES.intersection(storage.list_folder(folder)):
        check_saved_model(folder)


def _may_be_empty(artifact: Artifact) -> bool:
    """Tells whether a whole artifact may have no files, as that of a custom component.

    A `run_fn` of the user's need not write into its ModelRun, and an evaluation may have no matrix.
    """
    kind = artifact.type_name
    if kind in (standard_artifacts.ModelRun.TYPE_NAME, ClassificationMetrics.TYPE_NAME):
        return True
    return kind not in _STANDARD and not kind.startswith(("darkroom.", "system."))


def _list_places(artifact: Artifact) -> Iterator[str]:
    """Yields the folders that must have the files of an artifact.

    Of a pushed model these are the place that it was pushed to and the copy in its artifact, if
    that is another one; none where nothing was pushed. Its `pushed_destination` is the path of
    that place, or, where the model is only in the artifact, a name in it (see the Pusher).
    """
    if artifact.type_name != standard_artifacts.PushedModel.TYPE_NAME:
        yield artifact.uri
    elif artifact.get_int_custom_property("pushed"):
        destination = artifact.get_string_custom_property("pushed_destination")
        place = storage.join(artifact.uri, destination)
        # Below the artifact if the model is only there; otherwise the artifact has its own copy.
        # A relative path may also begin here, as that of a pipeline with a relative root does.
        if destination != place and storage.exists(place):
            yield place
        else:
            yield from (destination, artifact.uri)


def keep_sums(uri: str, kind: str) -> None:
    """Keeps the hashes of an artifact that a node has just made.

    None are kept of a remote one: each later run would read all its files.

    Args:
        uri: URI of the artifact: its folder, or its only file.
        kind: Name of its type.
    """
    if not uri or storage.is_remote(uri):
        return
    try:
        # The list of hashes is text, with a line for each file.
        names = [name for name in storage.look_up_files(uri) if name.isprintable()]
        if not names and os.path.isfile(storage.local_path(uri)):
            uri, name = os.path.split(uri)
            names = [name]
        if kind == standard_artifacts.Examples.TYPE_NAME:
            # Records have separate hashes, which reading checks; they may take hours to read.
            names = [name for name in names if not name.startswith(split_folder(""))]
        if names:
            folder = _find_folder(uri)
            storage.make_folder(folder)
            write_sums(folder, {name: sum_file(storage.join(uri, name)) for name in names})
    except OSError as error:
        # The node has done its work: a user's component may have left a pipe.
        logging.warning("The hashes of %s cannot be kept: %s.", uri, error)


def _find_damage(uri: str, copies: Iterable[str] = ()) -> str:
    """Returns the change of an artifact since it was made; empty without one.

    Args:
        uri: URI of the artifact.
        copies: Folders that have its files under the same names.

    Raises:
        DataError: The hashes are damaged themselves.
        OSError: A file cannot be read.
    """
    if storage.is_remote(uri):
        return ""
    # The URI of an artifact may be that of its only file.
    for folder in (uri, os.path.dirname(uri)):
        kept = _find_folder(folder)
        if not storage.exists(storage.join(kept, SUMS_FILE)):
            continue  # none were kept, as of an artifact without files
        sums = read_sums(kept)
        for place in (folder, *copies):
            for name, what in find_changed(place, sums, sorted(sums)):
                return f"{storage.join(place, name)} {what}"
    return ""


def _find_folder(uri: str) -> str:
    """Returns the folder with the hashes of an artifact, whose path is ROOT/NODE/KEY/EXECUTION."""
    parent, execution = os.path.split(uri.rstrip("/"))
    node, key = os.path.split(parent)
    return storage.join(node, *_FOLDER, key, execution)
