"""A training outside of a pipeline: from converted datasets to a SavedModel, in one folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from darkroom import storage
from darkroom.dataset import commit as datasets
from darkroom.dataset import layout
from darkroom.errors import DataError, UsageError
from darkroom.options.training import TrainingOptions
from darkroom.profiling.verdict import VERDICT_MARKDOWN
from darkroom.runtime import progress
from darkroom.storage.locks import FolderLock
from darkroom.training.cluster import read_cluster
from darkroom.training.history import format_best_epoch

# The commit of a training: written last, when the model is there.
RESULT_FILE = "training.json"
MODEL_FOLDER = "model"


@dataclass(frozen=True)
class TrainingResult:
    """What a training led to.

    Attributes:
        epochs: Epochs done.
        best_epoch: The one, from 1, whose weights the model has.
        metrics: Losses and metrics of that epoch, by Keras's names.
        checkpoint_dir: Where checkpoints, history and TensorBoard's files are.
        model_dir: Where the SavedModel is.
        verdict: Whether and by what input held the training back; None where nothing was left to
            train.
        already_complete: Whether an earlier run had done all this.
    """

    epochs: int
    best_epoch: int
    metrics: dict[str, float]
    checkpoint_dir: str
    model_dir: str
    verdict: str | None = None
    already_complete: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as values that JSON knows."""
        return asdict(self)


def train_datasets(
    data: Sequence[str],
    options: TrainingOptions,
    checkpoint_dir: str,
    eval_data: Sequence[str] = (),
) -> TrainingResult | None:
    """Trains on converted datasets, going on where an earlier run stopped, and exports the model.

    Args:
        data: Folders that `darkroom convert` wrote, or patterns of such; or one list or folder of
            images, as `darkroom convert` takes it, whose images are read where they lie. Train and
            eval splits are used; all must have one label map.
        options: What is trained and how.
        checkpoint_dir: Gets checkpoints, history, TensorBoard's files and the SavedModel, `model`.
        eval_data: The same, whose eval splits are used instead.

    Returns:
        The result; None in a process that is not the chief of several.

    Raises:
        DataError: No folder matches, one is no dataset, label maps differ, or a split has no
            records.
        OutputError: Another process trains in `checkpoint_dir`, or a training on other data has.
        UsageError: An option is wrong, or does not fit what is in `checkpoint_dir`.
        StorageError: Something cannot be read or written, or another worker is gone.
    """
    folder = storage.absolute(checkpoint_dir)
    splits = _open_splits(data, eval_data)
    # What the model follows from; how it is computed may change from run to run.
    plan = {"options": options.to_dict(), "data": splits.identity}
    if done := _read_result(folder, plan):
        return done if read_cluster().is_chief else None
    if not read_cluster().is_chief:
        _train_and_export(splits, options, folder, export=False)
        return None
    storage.make_folder(folder)
    with FolderLock(folder):
        result = _train_and_export(splits, options, folder, export=True)
        text = json.dumps({"plan": plan, "result": result.to_dict()}, indent=1) + "\n"
        storage.write_bytes(storage.join(folder, RESULT_FILE), text.encode())
    return result


def format_result(result: TrainingResult) -> str:
    """Returns the result as lines for a person."""
    metrics = ", ".join(f"{name} {value:.4f}" for name, value in result.metrics.items())
    head = "Already complete: nothing was done.\n" if result.already_complete else ""
    stages = storage.join(result.checkpoint_dir, VERDICT_MARKDOWN)
    verdict = f"Input      {result.verdict}\n           {stages}\n" if result.verdict else ""
    epoch = format_best_epoch(result.best_epoch, result.epochs)
    return (
        f"{head}Epoch      {epoch}\nMetrics    {metrics}\n{verdict}"
        f"History    {result.checkpoint_dir}\nModel      {result.model_dir}"
    )


class _Splits(NamedTuple):
    """What is trained on: patterns of TFRecords, or images read where they lie."""

    train: Any
    eval: Any
    labels: Sequence[str] | None
    identity: Any


def _train_and_export(
    splits: _Splits, options: TrainingOptions, folder: str, *, export: bool
) -> TrainingResult:
    from darkroom.training.export import export_model
    from darkroom.training.run import read_example_labels, train

    labels = splits.labels or read_example_labels([*splits.train, *splits.eval])
    model_dir = storage.join(folder, MODEL_FOLDER)
    with progress.step("Training"):
        trained = train(
            options,
            train_files=splits.train,
            eval_files=splits.eval,
            num_classes=len(labels),
            run_dir=folder,
        )
    if export:
        storage.delete(storage.join(folder, RESULT_FILE))
        storage.delete(model_dir)
        with progress.step("Export"):
            export_model(
                trained.model, labels, options.image_size, model_dir, resize=options.resize
            )
    entry = trained.history[trained.best_epoch - 1]
    metrics = {name: value for name, value in entry.items() if name != "epoch"}
    verdict = trained.verdict.sentence if trained.verdict else None
    return TrainingResult(
        len(trained.history), trained.best_epoch, metrics, folder, model_dir, verdict
    )


def _open_splits(data: Sequence[str], eval_data: Sequence[str]) -> _Splits:
    are_manifests = [_is_manifest(path) for path in (*data, *eval_data)]
    if any(are_manifests):
        if len(data) > 1 or len(eval_data) > 1 or not all(are_manifests):
            raise UsageError(
                f"Images that are not converted come from one list, folder or pattern, got "
                f"{', '.join([*data, *eval_data])}.",
                "Give one, or convert them all.",
            )
        return _open_manifests(data, eval_data)
    training = _read_datasets(data)
    evaluation = _read_datasets(eval_data) if eval_data else training
    return _Splits(
        _list_patterns("train", training),
        _list_patterns("eval", evaluation),
        None,
        [[dataset.fingerprint for dataset in part.values()] for part in (training, evaluation)],
    )


def _is_manifest(path: str) -> bool:
    """Tells whether a path, or a pattern, names images rather than converted datasets."""
    from darkroom.input.files import is_converted

    full = storage.absolute(path)
    if storage.is_pattern(full):
        return not storage.match_pattern(storage.join(full, layout.DATASET_FILE))
    return not is_converted(full)


def _open_manifests(data: Sequence[str], eval_data: Sequence[str]) -> _Splits:
    from darkroom.input.files import open_images
    from darkroom.options.manifest import ManifestOptions

    labels, splits = open_images(data[0])
    evaluation = splits
    if eval_data:
        evaluation = open_images(eval_data[0], ManifestOptions(labels=labels)).splits
    for name, found, path in (
        ("train", splits, data[0]),
        ("eval", evaluation, (eval_data or data)[0]),
    ):
        if name not in found:
            raise DataError(
                f"There is no image of the {name} split in {path}.", "Give the split in the source."
            )
    chosen = splits["train"], evaluation["eval"]
    return _Splits(*chosen, labels, [source.identify() for source in chosen])


def _read_datasets(paths: Sequence[str]) -> dict[str, datasets.Dataset]:
    """Returns the commits of the folders that paths and patterns name."""
    roots: list[str] = []
    for path in map(storage.absolute, paths):
        found = [path]
        if storage.is_pattern(path):
            commits = storage.match_pattern(storage.join(path, layout.DATASET_FILE))
            found = sorted(commit.rpartition("/")[0] for commit in commits)
        roots += found
    return {root: datasets.read_dataset(root) for root in dict.fromkeys(roots)}


def _list_patterns(split: str, commits: Mapping[str, datasets.Dataset]) -> list[str]:
    patterns = []
    for root, dataset in commits.items():
        found = dataset.splits.get(split)
        if found and found.records:
            patterns.append(f"{storage.join(root, layout.split_folder(split))}/*")
    if not patterns:
        raise DataError(
            f"There is no record of the {split} split in {', '.join(commits)}.",
            "Give the split in the source, or shares with convert --split-ratios.",
        )
    return patterns


def _read_result(folder: str, plan: dict[str, Any]) -> TrainingResult | None:
    """Returns the result of an earlier run with the same plan; None when there is none.

    Nor is there one when its model is gone: the checkpoints still say what that was.
    """
    path = storage.join(folder, RESULT_FILE)
    model = storage.join(folder, MODEL_FOLDER, "saved_model.pb")
    if not (storage.exists(path) and storage.exists(model)):
        return None
    try:
        saved = json.loads(storage.read_bytes(path))
        if saved["plan"] != plan:
            return None
        values = {**saved["result"], "already_complete": True}
        # The folder may have been moved since.
        values.update(checkpoint_dir=folder, model_dir=storage.join(folder, MODEL_FOLDER))
        return TrainingResult(**values)
    except (ValueError, KeyError, TypeError):
        # Ours were written whole; whatever this is, the checkpoints say how far the training is.
        return None
