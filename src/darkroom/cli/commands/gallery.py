"""`darkroom gallery`: findings and images in one page, to look through and to decide about."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from darkroom.cli.shared.flags import add_command, add_overwrite, read_options
from darkroom.cli.shared.output import print_result


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "gallery",
        "Write findings and images as one page to look through, and to decide about.",
        page="guides/gallery",
        examples=(
            "darkroom gallery records",
            "darkroom gallery records --predictions photos/predicted.csv",
            "darkroom gallery records --serve",
        ),
    )
    parser.add_argument("directory", metavar="RECORDS", help="A dataset; gs:// and s3:// work")
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--serve",
        action="store_true",
        help="Show it to browsers of this machine until Ctrl+C, with pictures of 50,000 images",
    )
    place.add_argument("--output", metavar="FILE", help="The file to write (default: gallery.html)")
    parser.add_argument(
        "--predictions",
        metavar="FILE",
        help="What a model says of the images: the file of darkroom predict",
    )
    add_overwrite(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.runtime import progress
    from darkroom.validation.browse import open_gallery, write_gallery

    options = read_options(arguments)
    with progress.use(progress.make_sink(sys.stderr)):
        if not options.pop("serve", False):
            print_result(write_gallery(**options), as_json=arguments.json)
            return 0
        del options["overwrite"]
        server = open_gallery(**options)
    with server:
        said = json.dumps({"url": server.url}) if arguments.json else f"Open {server.url}"
        print(said, flush=True)
        server.serve_forever()
    return 0
