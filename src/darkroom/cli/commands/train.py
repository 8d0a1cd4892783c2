"""`darkroom train`: a model from converted datasets."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from darkroom.cli.shared.flags import FlagGroups, add_command, read_options
from darkroom.cli.shared.models import start_tensorflow
from darkroom.cli.shared.output import print_result
from darkroom.options.training import TrainingFields

QUIET = True


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "train",
        "Train a model on converted datasets; a run that was stopped resumes.",
        page="guides/training",
        usage="darkroom train --data PATH [PATH ...] --checkpoint-dir DIR [options]",
        examples=(
            "darkroom train --data records --checkpoint-dir runs/first --epochs 20",
            "darkroom train --data records --checkpoint-dir runs/second "
            "--model keras.applications:MobileNetV2 --image-size 224",
        ),
    )
    flags = FlagGroups(parser)
    flags.add(
        "data",
        "--data",
        metavar="PATH",
        nargs="+",
        required=True,
        help="Datasets, or patterns of datasets; or one list or folder of images",
    )
    flags.add(
        "data",
        "--eval-data",
        metavar="PATH",
        nargs="+",
        default=(),
        help="Datasets for the eval split (default: those of --data)",
    )
    flags.add(
        "training",
        "--checkpoint-dir",
        metavar="DIR",
        required=True,
        help="Folder for checkpoints, history and the model",
    )
    flags.add_options(TrainingFields)
    parser.set_defaults(image_size=TrainingFields.image_size)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from contextlib import nullcontext

    from darkroom.runtime import progress
    from darkroom.training.devices.environment import read_cluster
    from darkroom.training.train import make_options, train_datasets

    values = read_options(arguments)
    data, folder = values.pop("data"), values.pop("checkpoint_dir")
    eval_data = values.pop("eval_data")
    is_chief, options = read_cluster().is_chief, make_options(values)  # before TensorFlow is loaded
    start_tensorflow("darkroom.training.run")
    with progress.use(progress.make_sink(sys.stderr)) if is_chief else nullcontext():
        result = train_datasets(data, options, folder, eval_data)
    if result is not None:
        print_result(result, as_json=arguments.json)
    return 0
