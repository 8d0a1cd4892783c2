"""The arguments of the command line; imports nothing that takes time."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from typing import Any, NoReturn

from darkroom.cli.flags import (
    add_pipeline_options,
    add_record_options,
    add_source_options,
    add_submission_options,
    add_target_options,
    add_training_options,
    parse_pair,
    parse_size,
)
from darkroom.errors import UsageError
from darkroom.version import __version__

# What is not given stays absent, so that a configuration file or a default can fill it in.
_ABSENT = argparse.SUPPRESS


class _Parser(argparse.ArgumentParser):
    """Raises an error of ours for wrong arguments, so that it is reported like all others."""

    def parse_known_args(  # type: ignore[override]  # the namespace is always argparse's
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuses what is unknown here, where the options are known, and not a parser above."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            name = unknown[0].partition("=")[0]
            near = difflib.get_close_matches(name, self._option_string_actions, n=1)
            raise UsageError(
                f"Unrecognized arguments: {' '.join(unknown)}.",
                f"{f'Did you mean {near[0]}? ' if near else ''}See {self.prog} --help.",
            )
        return found, unknown

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", f"See {self.prog} --help.")


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of the whole command line; it raises UsageError for wrong arguments."""
    parser = _Parser(
        prog="darkroom",
        allow_abbrev=False,
        description="Develops image datasets into verified TFRecords and trained models.",
        epilog="Exit codes: 0 done, 1 the data failed a check, 2 wrong usage, 3 environment, "
        "4 the output is held or holds other data, 70 a defect, 128+n ended by signal n.",
    )
    parser.add_argument("--version", action="version", version=f"darkroom {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_convert(commands)
    _add_verify(commands)
    _add_duplicates(commands)
    _add_inspect(commands)
    _add_train(commands)
    _add_run(commands)
    _add_compile(commands)
    _add_submit(commands)
    _add_demo(commands)
    _add_dataservice(commands)
    _add_benchmark(commands)
    return parser


def _add_command(commands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=summary, argument_default=_ABSENT, allow_abbrev=False
    )
    parser.add_argument(
        "--json", action="store_true", default=False, help="print the result as one JSON object"
    )
    return parser


def _add_convert(commands: Any) -> None:
    parser = _add_command(commands, "convert", "Convert images and labels into TFRecords.")
    parser.add_argument(
        "source", help="CSV, JSONL or Parquet file, pattern of files, or folder of images"
    )
    parser.add_argument(
        "--output-dir", required=True, help="folder for the dataset; gs:// and s3:// work"
    )
    add_source_options(parser)
    parser.add_argument("--label-map", metavar="FILE", help="labels in order, one a line")
    add_record_options(parser)
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace another dataset; files that darkroom did not write are never deleted",
    )
    parser.add_argument("--runner", help="Beam runner (default: in this process)")
    parser.add_argument("--project", help="Google Cloud project, for Dataflow")
    parser.add_argument("--region", help="Google Cloud region, for Dataflow")
    parser.add_argument(
        "--no-wait", dest="wait", action="store_false", help="do not wait for a Dataflow job"
    )
    parser.add_argument(
        "--beam-option",
        metavar="NAME=VALUE",
        type=parse_pair,
        action="append",
        default=None,
        help="further option of Beam; may be repeated",
    )
    parser.set_defaults(columns=None)


def _add_verify(commands: Any) -> None:
    parser = _add_command(
        commands, "verify", "Read a whole dataset and hold every byte against its commit."
    )
    parser.add_argument("directory", metavar="DIR", help="a dataset; gs:// and s3:// work")
    parser.epilog = "Exit codes: 0 sound, 1 damaged or no dataset, 3 something cannot be read."


def _add_duplicates(commands: Any) -> None:
    parser = _add_command(
        commands, "duplicates", "List images that a dataset holds twice, by bytes and by pixels."
    )
    parser.add_argument("directory", metavar="DIR", help="a dataset; gs:// and s3:// work")
    parser.add_argument(
        "--output", metavar="FILE", default=None, help="default: DIR/duplicates.parquet"
    )


def _add_inspect(commands: Any) -> None:
    parser = _add_command(commands, "inspect", "Show records as a contact sheet and a CSV.")
    parser.add_argument("directory", metavar="DIR", help="a dataset")
    parser.add_argument("--split", default="train", help="train, eval or test (default: train)")
    parser.add_argument("-n", "--num-records", type=int, default=32, help="how many (default: 32)")
    parser.add_argument(
        "--output-dir", default="inspection", help="folder to write to (default: inspection)"
    )


def _add_train(commands: Any) -> None:
    parser = _add_command(
        commands, "train", "Train a model on converted datasets, going on where a run stopped."
    )
    parser.add_argument(
        "--data",
        metavar="PATH",
        nargs="+",
        required=True,
        help="datasets, or patterns of such; or one list or folder of images",
    )
    parser.add_argument(
        "--eval-data",
        metavar="PATH",
        nargs="+",
        default=(),
        help="datasets whose eval split counts (default: those of --data)",
    )
    parser.add_argument(
        "--checkpoint-dir",
        metavar="DIR",
        required=True,
        help="folder for checkpoints, history and the model",
    )
    add_training_options(parser, cache="cache")
    parser.set_defaults(image_size=(128, 128))
    parser.add_argument("--shuffle-records", type=int, help="held in memory (default: 2048)")
    parser.add_argument("--seed", type=int, help="of weights, order and augmentation (default: 0)")


def _add_run(commands: Any) -> None:
    parser = _add_command(
        commands, "run", "Run the whole pipeline here: from a list of images to a pushed model."
    )
    add_pipeline_options(parser)
    parser.add_argument(
        "--overwrite",
        action="store_true",
        default=False,
        help="use DIR although it holds other data",
    )


def _add_compile(commands: Any) -> None:
    parser = _add_command(
        commands, "compile", "Compile the pipeline for Kubeflow Pipelines or Vertex AI Pipelines."
    )
    add_target_options(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help=".yaml for kubeflow, .json for vertex"
    )
    add_pipeline_options(parser)


def _add_submit(commands: Any) -> None:
    parser = _add_command(
        commands, "submit", "Submit the pipeline to Kubeflow Pipelines or Vertex AI Pipelines."
    )
    parser.epilog = (
        "Exit codes: 0 submitted, and with --wait succeeded; 1 the run that was waited for did not "
        "succeed, or the source cannot be used; 2 wrong usage, or the service refuses the run; "
        "3 the service or a file cannot be reached or read; 70 a defect; 128+n ended by signal n."
    )
    add_target_options(parser)
    add_submission_options(parser)
    add_pipeline_options(parser)


def _add_demo(commands: Any) -> None:
    parser = _add_command(
        commands, "demo", "Run the whole pipeline on 1,797 real digits, with a few planted faults."
    )
    parser.add_argument(
        "--root", metavar="DIR", default="darkroom-demo", help="default: darkroom-demo"
    )
    parser.add_argument(
        "--policy",
        metavar="CHECK=POLICY",
        type=parse_pair,
        action="append",
        help="as for run; here leakage and label_conflicts are set to warn",
    )


def _add_dataservice(commands: Any) -> None:
    summary = "Run a part of a tf.data service, until a signal ends it."
    parser = commands.add_parser(
        "dataservice", help=summary, description=summary, allow_abbrev=False
    )
    roles = parser.add_subparsers(dest="role", required=True, metavar="ROLE")
    dispatcher = _add_command(roles, "dispatcher", "Run the dispatcher, which hands out files.")
    dispatcher.add_argument(
        "--work-dir", metavar="DIR", default=None, help="journal, to go on after a restart"
    )
    dispatcher.add_argument(
        "--worker",
        dest="workers",
        metavar="HOST:PORT",
        action="append",
        default=None,
        help="address of each worker, for sharding by file only; repeated",
    )
    worker = _add_command(roles, "worker", "Run a worker, which prepares batches.")
    worker.add_argument("--dispatcher", metavar="ADDRESS", required=True, help="grpc://host:port")
    for each in (dispatcher, worker):
        each.add_argument("--port", type=int, required=True, help="port to listen on")
        each.add_argument(
            "--host",
            default="localhost",
            help="name under which other machines reach this one, which is all that it sets: "
            "TensorFlow listens on all interfaces (default: localhost)",
        )


def _add_benchmark(commands: Any) -> None:
    summary = "Measure on this machine, with your data."
    parser = commands.add_parser("benchmark", help=summary, description=summary, allow_abbrev=False)
    subjects = parser.add_subparsers(dest="subject", required=True, metavar="SUBJECT")
    reading = _add_command(subjects, "input", "Compare ways to read a dataset for training.")
    reading.add_argument("directory", metavar="DIR", help="a dataset; gs:// works")
    reading.add_argument(
        "--image-size", metavar="HEIGHTxWIDTH", type=parse_size, help="default: 224x224"
    )
    reading.add_argument("--batch-size", type=int, help="images in a batch (default: 64)")
    reading.add_argument(
        "--images", type=int, help="size of the sample, at least eight batches (default: 1024)"
    )
    reading.add_argument(
        "--step-seconds",
        type=float,
        help="length of the emulated accelerator's step (default: nine tenths of the fastest way)",
    )
    reading.add_argument(
        "--output-dir",
        metavar="DIR",
        default="input-benchmark",
        help="folder for picture and tables (default: input-benchmark)",
    )
