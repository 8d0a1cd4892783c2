"""The arguments of the commands that train, and that feed a training."""

from __future__ import annotations

from typing import Any

from darkroom.cli.flags import (
    FlagGroups,
    add_command,
    add_overwrite,
    parse_int,
    parse_number,
    parse_size,
)
from darkroom.options.training import FORMATS, TrainingFields


def add_train(commands: Any) -> None:
    """Adds `darkroom train`."""
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
    flags.add(
        "training",
        "--tune",
        metavar="N",
        type=parse_int,
        default=0,
        help="Search for the best options in N trials first (default: no search)",
    )
    flags.add_options(TrainingFields)
    parser.set_defaults(image_size=TrainingFields.image_size)


def _add_model(parser: Any) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="Folder of a training, or a SavedModel of darkroom's"
    )


def add_evaluate(commands: Any) -> None:
    """Adds `darkroom evaluate`."""
    parser = add_command(
        commands,
        "evaluate",
        "Say how good an exported model is on a split that it was not trained on.",
        page="guides/evaluate",
        usage="darkroom evaluate MODEL RECORDS [RECORDS ...] [options]",
        examples=(
            "darkroom evaluate runs/first records",
            "darkroom evaluate runs/first/model new-photos --split all --report report",
        ),
        epilog="Exit codes: 0 done, 1 no such model, split or label, or a damaged image; 3 "
        "something cannot be read or written; 4 the folder of the report has other files.",
    )
    _add_model(parser)
    parser.add_argument(
        "records",
        metavar="RECORDS",
        nargs="+",
        help="Datasets, or patterns of datasets; or one list or folder of images",
    )
    parser.add_argument(
        "--split",
        metavar="NAME",
        default="test",
        help="train, eval or test, or another name of it, as val; all takes all (default: test)",
    )
    parser.add_argument(
        "--report",
        dest="report_dir",
        metavar="DIR",
        default=None,
        help="Folder for model.html, model.md and evaluation.json (default: nothing is written)",
    )


def add_predict(commands: Any) -> None:
    """Adds `darkroom predict`."""
    parser = add_command(
        commands,
        "predict",
        "Say what an exported model predicts for images, as a server would.",
        page="guides/evaluate",
        usage="darkroom predict MODEL IMAGES [IMAGES ...] [options]",
        examples=(
            "darkroom predict runs/first new/a.jpg new/b.png",
            "darkroom predict runs/first photos --output photos/predicted.csv",
        ),
        epilog="Exit codes: 0 done, also if some images cannot be decoded; 1 no model, or none "
        "can; 3 something cannot be read or written; 4 the output exists already.",
    )
    _add_model(parser)
    parser.add_argument("images", metavar="IMAGES", nargs="+", help="Images, folders or patterns")
    parser.add_argument(
        "--output",
        metavar="FILE",
        default=None,
        help="CSV or JSONL file of path, label and score, which darkroom convert takes (default: "
        "they are printed)",
    )
    add_overwrite(parser)


def add_export(commands: Any) -> None:
    """Adds `darkroom export`."""
    parser = add_command(
        commands,
        "export",
        "Write a trained model for TFLite or ONNX, and compare its answers.",
        page="guides/exporting",
        usage="darkroom export MODEL RECORDS [RECORDS ...] --output-dir DIR [options]",
        examples=(
            "darkroom export runs/first records --output-dir exports",
            "darkroom export runs/first records --output-dir exports --format tflite onnx",
        ),
    )
    _add_model(parser)
    parser.add_argument(
        "records",
        metavar="RECORDS",
        nargs="+",
        help="Datasets, or one list or folder of images: answers are compared on the eval split",
    )
    parser.add_argument(
        "--output-dir", metavar="DIR", required=True, help="Folder for the files and the label map"
    )
    parser.add_argument(
        "--format",
        dest="formats",
        metavar="NAME",
        nargs="+",
        choices=FORMATS,
        default=FORMATS[:3],
        help=f"Formats: {', '.join(FORMATS)} (default: all of TFLite)",
    )


def add_dataservice(commands: Any) -> None:
    """Adds `darkroom dataservice`."""
    summary = "Run a part of a tf.data service, until a signal ends it."
    parser = commands.add_parser(
        "dataservice", help=summary, description=summary, allow_abbrev=False
    )
    roles = parser.add_subparsers(dest="role", required=True, metavar="ROLE")
    dispatcher = add_command(
        roles,
        "dispatcher",
        "Run the dispatcher, which hands out files.",
        page="guides/data-service",
    )
    dispatcher.add_argument(
        "--work-dir",
        metavar="DIR",
        default=None,
        help="Folder for a journal, to resume after a restart",
    )
    dispatcher.add_argument(
        "--worker",
        dest="workers",
        metavar="HOST:PORT",
        action="append",
        default=None,
        help="Address of each worker, for sharding by file only; may be repeated",
    )
    worker = add_command(
        roles, "worker", "Run a worker, which prepares batches.", page="guides/data-service"
    )
    worker.add_argument(
        "--dispatcher", metavar="ADDRESS", required=True, help="Address as in grpc://host:port"
    )
    for each in (dispatcher, worker):
        each.add_argument(
            "--port", metavar="N", type=parse_int, required=True, help="Port to listen on"
        )
        each.add_argument(
            "--host",
            metavar="NAME",
            default="localhost",
            help="Name under which other machines reach this one. It sets nothing else: "
            "TensorFlow listens on all interfaces (default: localhost)",
        )


def add_benchmark(commands: Any) -> None:
    """Adds `darkroom benchmark`."""
    summary = "Measure on this machine, with your data."
    parser = commands.add_parser("benchmark", help=summary, description=summary, allow_abbrev=False)
    subjects = parser.add_subparsers(dest="subject", required=True, metavar="SUBJECT")
    reading = add_command(
        subjects,
        "input",
        "Compare ways to read a dataset for training.",
        page="guides/find-the-bottleneck",
    )
    reading.add_argument("directory", metavar="DIR", help="A dataset; gs:// works")
    reading.add_argument(
        "--image-size",
        metavar="HEIGHTxWIDTH",
        type=parse_size,
        help="Size of the images in batches (default: 224x224)",
    )
    reading.add_argument(
        "--batch-size", metavar="N", type=parse_int, help="Images per batch (default: 64)"
    )
    reading.add_argument(
        "--images",
        metavar="N",
        type=parse_int,
        help="Size of the sample, at least eight batches (default: 1024)",
    )
    reading.add_argument(
        "--step-seconds",
        metavar="SECONDS",
        type=parse_number,
        help="Length of the emulated accelerator's step (default: nine tenths of the fastest way)",
    )
    reading.add_argument(
        "--output-dir",
        metavar="DIR",
        default="input-benchmark",
        help="Folder for picture and tables (default: input-benchmark)",
    )
