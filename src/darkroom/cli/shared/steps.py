"""The commands of steps: their flags, and how they end."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any

from darkroom.cli.shared.flags import FlagGroups, add_command, read_options
from darkroom.cli.shared.output import print_failure, print_result
from darkroom.steps.command import Flag
from darkroom.steps.parts import ANNOTATIONS_FLAG, RESULTS_FLAG
from darkroom.steps.step import Made, Step


def add_step(commands: Any, step: Step) -> None:
    """Adds the command of a step, if it has one.

    Args:
        commands: The result of `add_subparsers`.
        step: The step.
    """
    if step.command is None:
        return
    name, summary, flags, usage, examples, epilog, page, is_quiet = step.command
    parser = add_command(commands, name, summary, usage, examples, epilog, page)
    groups = FlagGroups(parser)
    for each in flags:
        if isinstance(each, Flag):
            groups.add(each.group, *each.names, help=each.help, **each.details)
        else:
            groups.add_options(*each.classes, names=each.names)
    parser.set_defaults(run=partial(run_step, step), is_quiet=is_quiet)


def add_results(parser: argparse.ArgumentParser, **details: Any) -> None:
    """Adds the flags that name results of a detector.

    Args:
        parser: The parser of a command that is not that of a step.
        details: Further arguments of argparse for `--results`.
    """
    for each, more in ((RESULTS_FLAG, details), (ANNOTATIONS_FLAG, {})):
        parser.add_argument(*each.names, help=each.help, **each.details, **more)


def run_step(step: Step, arguments: argparse.Namespace) -> int:
    """Runs a step; returns the exit code.

    Raises:
        DarkroomError: The step failed, or the data did not pass.
        OSError: Something cannot be read or written.
    """
    from darkroom.runtime import progress

    options = read_options(arguments)
    known = {each.name for each in (*step.inputs, *step.outputs)}
    places = {name: options.pop(name) for name in known & options.keys()}
    with progress.use(progress.make_sink(sys.stderr)):
        made = step.run(places, options)
    return _end(made, as_json=arguments.json)


def _end(made: Made, *, as_json: bool) -> int:
    """Prints what a step made; returns the exit code."""
    if made.error and as_json:
        return print_failure(made.result.to_dict(), made.error)
    print_result(made.result, as_json=as_json)
    if made.error and made.verdict:
        # What was found is the result, and printed already.
        raise type(made.error)(made.verdict, made.error.hint)
    return made.error.exit_code if made.error else 0
