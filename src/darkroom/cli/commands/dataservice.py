"""`darkroom dataservice`: a part of a tf.data service."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any, NoReturn

from darkroom.cli.shared.flags import add_command, parse_int
from darkroom.cli.shared.models import start_tensorflow

_SIGNAL_SECONDS = 0.5


def add(commands: Any) -> None:
    """Adds the command."""
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


def run(arguments: argparse.Namespace) -> NoReturn:
    """Runs the command until a signal ends it."""
    # Only the start of TensorFlow is silent: later, the output of a server is all that there is.
    start_tensorflow()
    from darkroom.input.service import run_dispatcher, run_worker

    if arguments.role == "dispatcher":
        server = run_dispatcher(
            arguments.port,
            host=arguments.host,
            work_dir=arguments.work_dir,
            workers=arguments.workers or (),
        )
    else:
        server = run_worker(arguments.dispatcher, arguments.port, host=arguments.host)
    with server as address:
        print(json.dumps({"address": address}) if arguments.json else address, flush=True)
        while True:
            # signal.pause() would wait forever if the signal came just before it.
            time.sleep(_SIGNAL_SECONDS)
