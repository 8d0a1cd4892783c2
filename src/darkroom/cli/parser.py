"""The arguments of the command line; imports nothing that takes time."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from typing import Any, NoReturn

from darkroom.cli.flags import FlagGroups, escape, format_epilog, parse_pair, parse_size
from darkroom.errors import UsageError
from darkroom.options.conversion import ConversionFields
from darkroom.options.pipeline import PipelineFields
from darkroom.options.source import DATA_HELP, SourceFields
from darkroom.options.targets import TARGETS, KubeflowFields, VertexOptions
from darkroom.options.training import TrainingFields
from darkroom.options.validation import ValidationFields
from darkroom.version import __version__

# What is not given stays absent, so that a configuration file or a default can fill it in.
_ABSENT = argparse.SUPPRESS


class _Parser(argparse.ArgumentParser):
    """Raises an error of ours for wrong arguments, so that it is reported like all others."""

    def parse_known_args(  # type: ignore[override]  # the namespace is always argparse's
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Rejects unknown arguments here, where the options are known, not in a parser above."""
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
        "4 another process uses the output, or it contains other data, 70 a defect, "
        "128+n ended by signal n.",
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


def _add_command(
    commands: Any,
    name: str,
    summary: str,
    usage: str | None = None,
    examples: Sequence[str] = (),
    epilog: str = "",
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary,
        usage=usage,
        epilog=format_epilog(examples, epilog) if examples else escape(epilog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=_ABSENT,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--json", action="store_true", default=False, help="Print the result as one JSON object"
    )
    return parser


def _add_convert(commands: Any) -> None:
    parser = _add_command(
        commands,
        "convert",
        "Convert images and labels into TFRecords.",
        usage="darkroom convert SOURCE --output-dir DIR [options]",
        examples=(
            "darkroom convert images.csv --output-dir records",
            "darkroom convert photos/ --output-dir gs://bucket/records --resize-short-side 256",
        ),
    )
    flags = FlagGroups(parser)
    flags.add("data", "source", metavar="SOURCE", help=DATA_HELP)
    flags.add(
        "data",
        "--output-dir",
        metavar="DIR",
        required=True,
        help="Folder for the dataset; gs:// and s3:// work",
    )
    flags.add(
        "data",
        "--overwrite",
        action="store_true",
        help="Replace another dataset; files that darkroom did not write are never deleted",
    )
    flags.add_options(SourceFields, ConversionFields)
    flags.add_options(ValidationFields, names=("max_rejects",))
    flags.add("cluster", "--runner", metavar="NAME", help="Beam runner (default: in this process)")
    flags.add("cluster", "--project", metavar="NAME", help="Google Cloud project, for Dataflow")
    flags.add("cluster", "--region", metavar="NAME", help="Google Cloud region, for Dataflow")
    flags.add(
        "cluster",
        "--no-wait",
        dest="wait",
        action="store_false",
        help="Do not wait for a Dataflow job",
    )
    flags.add(
        "cluster",
        "--beam-option",
        metavar="NAME=VALUE",
        type=parse_pair,
        action="append",
        default=None,
        help="Another option of Beam; may be repeated",
    )


def _add_verify(commands: Any) -> None:
    parser = _add_command(
        commands,
        "verify",
        "Read a whole dataset and compare every byte with its commit.",
        epilog="Exit codes: 0 sound, 1 damaged or not a dataset, 3 something cannot be read.",
    )
    parser.add_argument("directory", metavar="DIR", help="A dataset; gs:// and s3:// work")


def _add_duplicates(commands: Any) -> None:
    parser = _add_command(
        commands,
        "duplicates",
        "List images that a dataset contains twice, by bytes and by pixels.",
    )
    parser.add_argument("directory", metavar="DIR", help="A dataset; gs:// and s3:// work")
    parser.add_argument(
        "--output",
        metavar="FILE",
        default=None,
        help="File for the list (default: DIR/duplicates.parquet)",
    )


def _add_inspect(commands: Any) -> None:
    parser = _add_command(commands, "inspect", "Show records as a contact sheet and a CSV.")
    parser.add_argument("directory", metavar="DIR", help="A dataset")
    parser.add_argument("--split", default="train", help="train, eval or test (default: train)")
    parser.add_argument(
        "-n",
        "--num-records",
        metavar="N",
        type=int,
        default=32,
        help="Number of records to show (default: 32)",
    )
    parser.add_argument(
        "--output-dir",
        metavar="DIR",
        default="inspection",
        help="Folder to write to (default: inspection)",
    )


def _add_train(commands: Any) -> None:
    parser = _add_command(
        commands,
        "train",
        "Train a model on converted datasets; a run that was stopped resumes.",
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


def _add_pipeline_flags(parser: argparse.ArgumentParser) -> FlagGroups:
    """Adds what a pipeline is told, wherever it runs: options of `PipelineConfig`."""
    flags = FlagGroups(parser)
    flags.add("run", "--config", metavar="FILE", help="TOML file with these options; flags win")
    flags.add_options(
        PipelineFields, SourceFields, ConversionFields, ValidationFields, TrainingFields
    )
    return flags


def _add_target_flags(flags: FlagGroups) -> None:
    flags.add(
        "run", "--target", choices=TARGETS, required=True, help="Service that runs the pipeline"
    )


def _add_run(commands: Any) -> None:
    parser = _add_command(
        commands,
        "run",
        "Run the whole pipeline on this machine: from a list of images to a pushed model.",
        usage="darkroom run --data PATH --root DIR [options]",
        examples=(
            "darkroom run --data images.csv --root runs/first",
            "darkroom run --config pipeline.toml --epochs 20 --policy leakage=warn",
        ),
    )
    flags = _add_pipeline_flags(parser)
    flags.add(
        "run",
        "--overwrite",
        action="store_true",
        default=False,
        help="Use the root even if it contains other data",
    )


def _add_compile(commands: Any) -> None:
    parser = _add_command(
        commands,
        "compile",
        "Compile the pipeline for Kubeflow Pipelines or Vertex AI Pipelines.",
        usage="darkroom compile --target {kubeflow,vertex} -o FILE --config FILE [options]",
        examples=(
            "darkroom compile --target kubeflow --config kubeflow.toml -o pipeline.yaml",
            "darkroom compile --target vertex --config vertex.toml -o pipeline.json",
        ),
    )
    flags = _add_pipeline_flags(parser)
    _add_target_flags(flags)
    flags.add(
        "run",
        "-o",
        "--output",
        metavar="FILE",
        required=True,
        help="File to write: .yaml for kubeflow, .json for vertex",
    )


def _add_submit(commands: Any) -> None:
    parser = _add_command(
        commands,
        "submit",
        "Submit the pipeline to Kubeflow Pipelines or Vertex AI Pipelines.",
        usage="darkroom submit --target {kubeflow,vertex} [--pipeline FILE] [options]",
        examples=(
            "darkroom submit --target kubeflow --host https://kubeflow.example.com/pipeline "
            "--pipeline pipeline.yaml --epochs 20",
            "darkroom submit --target vertex --project my-project --region europe-west4 "
            "--config vertex.toml --wait",
        ),
        epilog="Exit codes: 0 submitted, and with --wait succeeded; 1 the run that was waited for "
        "did not succeed, or the source cannot be used; 2 wrong usage, or the service refuses the "
        "run; 3 the service or a file cannot be reached or read; 70 a defect; 128+n ended by "
        "signal n.",
    )
    flags = _add_pipeline_flags(parser)
    _add_target_flags(flags)
    flags.add(
        "run",
        "--pipeline",
        metavar="FILE",
        help="File that compile wrote; other options are then its run-time parameters "
        "(default: the pipeline is compiled from the options)",
    )
    flags.add(
        "run",
        "--wait",
        action="store_true",
        default=False,
        help="Wait for the end of the run; exit with 1 if it fails",
    )
    flags.add_options(KubeflowFields, VertexOptions)
    flags.add(
        "cluster",
        "--shared-paths",
        action="store_true",
        help="Local paths lead to the same files here and in the containers, so look at them",
    )


def _add_demo(commands: Any) -> None:
    parser = _add_command(
        commands,
        "demo",
        "Run the whole pipeline on 1,797 real digits, with a few planted faults.",
    )
    parser.add_argument(
        "--root",
        metavar="DIR",
        default="darkroom-demo",
        help="Folder for everything (default: darkroom-demo)",
    )
    FlagGroups(parser).add_options(ValidationFields, names=("policies",))


def _add_dataservice(commands: Any) -> None:
    summary = "Run a part of a tf.data service, until a signal ends it."
    parser = commands.add_parser(
        "dataservice", help=summary, description=summary, allow_abbrev=False
    )
    roles = parser.add_subparsers(dest="role", required=True, metavar="ROLE")
    dispatcher = _add_command(roles, "dispatcher", "Run the dispatcher, which hands out files.")
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
    worker = _add_command(roles, "worker", "Run a worker, which prepares batches.")
    worker.add_argument(
        "--dispatcher", metavar="ADDRESS", required=True, help="Address as in grpc://host:port"
    )
    for each in (dispatcher, worker):
        each.add_argument("--port", metavar="N", type=int, required=True, help="Port to listen on")
        each.add_argument(
            "--host",
            metavar="NAME",
            default="localhost",
            help="Name under which other machines reach this one. It sets nothing else: "
            "TensorFlow listens on all interfaces (default: localhost)",
        )


def _add_benchmark(commands: Any) -> None:
    summary = "Measure on this machine, with your data."
    parser = commands.add_parser("benchmark", help=summary, description=summary, allow_abbrev=False)
    subjects = parser.add_subparsers(dest="subject", required=True, metavar="SUBJECT")
    reading = _add_command(subjects, "input", "Compare ways to read a dataset for training.")
    reading.add_argument("directory", metavar="DIR", help="A dataset; gs:// works")
    reading.add_argument(
        "--image-size",
        metavar="HEIGHTxWIDTH",
        type=parse_size,
        help="Size of the images in batches (default: 224x224)",
    )
    reading.add_argument(
        "--batch-size", metavar="N", type=int, help="Images per batch (default: 64)"
    )
    reading.add_argument(
        "--images",
        metavar="N",
        type=int,
        help="Size of the sample, at least eight batches (default: 1024)",
    )
    reading.add_argument(
        "--step-seconds",
        metavar="SECONDS",
        type=float,
        help="Length of the emulated accelerator's step (default: nine tenths of the fastest way)",
    )
    reading.add_argument(
        "--output-dir",
        metavar="DIR",
        default="input-benchmark",
        help="Folder for picture and tables (default: input-benchmark)",
    )
