"""The options of the place where a conversion or a compiled pipeline runs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from darkroom.errors import UsageError
from darkroom.options.fields import check_fields, describe, document, option

KUBEFLOW, VERTEX = TARGETS = ("kubeflow", "vertex")
# Vertex mounts every bucket that the service account may read.
VERTEX_BUCKETS = "/gcs"
FLINK, SPARK, PRISM, DATAFLOW = ENGINE_NAMES = ("flink", "spark", "prism", "dataflow")
IMAGE, POOL, COMMAND = WORKERS = ("image", "pool", "command")


# Each field of cron with its lowest number and its highest, and names for its numbers. Kubeflow's
# parser, robfig/cron, does not know 7 for Sunday.
_CRON_FIELDS = (
    ("minute", 0, 59, ""),
    ("hour", 0, 23, ""),
    ("day", 1, 31, ""),
    ("month", 1, 12, "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"),
    ("weekday", 0, 6, "SUN MON TUE WED THU FRI SAT"),
)
# All numbers, one, or a range of them; each with a step or without.
_CRON_PART = re.compile(r"(?:[*?]|([0-9]{1,2}|[A-Z]+)(?:-([0-9]{1,2}|[A-Z]+))?)(?:/0*[1-9][0-9]*)?")
_ZONE_PREFIXES = ("CRON_TZ", "TZ")


@document
@dataclass(frozen=True, kw_only=True)
class SubmissionFields:
    """The options of a run on every service."""

    run_name: str | None = option(
        None, "Name of the run.", group="cluster", metavar="NAME", shown="from pipeline and time"
    )
    service_account: str | None = option(
        None,
        "Account under which the tasks run.",
        group="cluster",
        metavar="NAME",
        shown="the service's own",
    )
    experiment: str | None = option(
        None,
        "Experiment of the run; created if it does not exist.",
        group="cluster",
        metavar="NAME",
        shown="on Kubeflow Default, on Vertex none",
    )
    cron: str | None = option(
        None,
        "Run at these times from now on: minute, hour, day, month and weekday, as cron has them.",
        group="cluster",
        metavar="CRON",
        shown="once, now",
        more="On Kubeflow the times are those of its server; on Vertex UTC, or those of "
        "CRON_TZ=ZONE before the times.",
    )


@document
@dataclass(frozen=True, kw_only=True)
class KubeflowFields(SubmissionFields):
    """The options of a run on Kubeflow Pipelines."""

    host: str = field(
        metadata=describe("URL of Kubeflow Pipelines.", group="cluster", metavar="URL")
    )
    namespace: str | None = option(
        None,
        "Namespace of the user, where Kubeflow has several.",
        group="cluster",
        metavar="NAME",
        shown="kfp's own setting",
    )
    ca_file: str | None = option(
        None,
        "PEM file of the authority that signed Kubeflow's certificate.",
        group="cluster",
        metavar="FILE",
    )


@document
@dataclass(frozen=True, kw_only=True)
class VertexOptions(SubmissionFields):
    """The options of a run on Vertex AI Pipelines."""

    project: str = field(
        metadata=describe("Google Cloud project, for Vertex.", group="cluster", metavar="NAME")
    )
    region: str = field(
        metadata=describe(
            "Google Cloud region, for Vertex, as in europe-west4.", group="cluster", metavar="NAME"
        )
    )

    def __post_init__(self) -> None:
        """Checks the combination of the values.

        Raises:
            UsageError: A value is wrong, or excludes another one.
        """
        check_fields(self)
        parse_cron(self.cron)
        if self.cron and self.experiment:
            raise UsageError(
                "experiment and cron cannot be used together.", "Vertex's schedules have none."
            )


def parse_cron(text: str | None) -> tuple[str, str]:
    """Returns the time zone of a schedule, "" for none, and its times as five fields of cron.

    Args:
        text: As in `30 4 * * 1` or `CRON_TZ=Europe/Berlin 30 4 * * 1`; None for no schedule.

    Raises:
        UsageError: The text is not a schedule.
    """
    words = (text or "").split()
    zone = _parse_zone(words.pop(0)) if words and "=" in words[0] else ""
    if text is not None and len(words) != len(_CRON_FIELDS):
        raise UsageError(
            f"cron is {text!r}, expected five fields of cron.",
            "Give minute, hour, day, month and weekday, as in '30 4 * * 1' for Mondays at 4:30.",
        )
    for word, (name, low, high, names) in zip(words, _CRON_FIELDS, strict=False):
        if not all(_is_in_cron(part, low, high, names) for part in word.upper().split(",")):
            known = f" or {names[:3]}-{names[-3:]}" if names else ""
            raise UsageError(
                f"cron has the {name} {word!r}, expected {low}-{high}{known}.",
                "Give *, a number, a range like 1-5, a list like 1,3, or a step like */2.",
            )
    return zone, " ".join(words)


def _parse_zone(word: str) -> str:
    """Returns the time zone of a word like CRON_TZ=ZONE, checked where this machine knows zones."""
    prefix, _, zone = word.partition("=")
    if prefix not in _ZONE_PREFIXES:
        raise UsageError(
            f"cron begins with {word!r}, expected the times, or a time zone before them.",
            "Write CRON_TZ=ZONE or TZ=ZONE, as in 'CRON_TZ=Europe/Berlin 30 4 * * 1'.",
        )
    # Here, because `--help` would load it, too.
    from zoneinfo import available_timezones

    known = available_timezones()  # empty without tzdata
    if not zone or (known and zone not in known):
        raise UsageError(
            f"cron has the time zone {zone!r}, which does not exist.",
            "Give a name of the IANA time zone database, as Europe/Berlin or UTC.",
        )
    return zone


def _is_in_cron(part: str, low: int, high: int, names: str) -> bool:
    """Tells whether a part of a field has numbers, or names of them, in order and in a range."""
    found = _CRON_PART.fullmatch(part)
    if not found:
        return False
    known = {name: low + place for place, name in enumerate(names.split())}
    given = [each for each in found.groups() if each]
    numbers = [int(each) if each.isdigit() else known.get(each, -1) for each in given]
    return all(low <= each <= high for each in numbers) and numbers == sorted(numbers)


@document
@dataclass(frozen=True, kw_only=True)
class EngineFields:
    """Which engine runs the job that writes a dataset, and where it is."""

    engine: str | None = option(
        None,
        "Engine that writes the dataset; darkroom finds the options of Beam for it.",
        group="cluster",
        choices=ENGINE_NAMES,
        shown="in this process",
    )
    engine_url: str | None = option(
        None,
        "Address of the engine, as http://jobmanager:8081 or spark://master:7077.",
        group="cluster",
        metavar="URL",
    )
    engine_workers: str | None = option(
        None,
        "How darkroom runs on the machines of the engine: image=NAME, pool=HOST:PORT or "
        "command=PATH.",
        group="cluster",
        metavar="KIND=VALUE",
        shown="this process, if the engine is on this machine",
        more="A container image, a worker pool of Beam beside each task manager, or a program that "
        "starts a worker.",
    )


@document
@dataclass(frozen=True, kw_only=True)
class EngineOptions(EngineFields):
    """Which engine runs the job that writes a dataset, and where it is; checked when created."""

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            UsageError: A value is wrong, or needs an engine.
        """
        check_fields(self)
        if self.engine is None and (self.engine_url or self.engine_workers):
            name = "engine_url" if self.engine_url else "engine_workers"
            raise UsageError(f"{name} needs an engine.", f"Give engine: {', '.join(ENGINE_NAMES)}.")
        if "@" in (self.engine_url or ""):
            raise UsageError(
                "engine_url contains a user name or a password.", "It is shown; leave them out."
            )
        kind, equals, value = (self.engine_workers or "image=x").partition("=")
        if kind not in WORKERS or not equals or not value:
            raise UsageError(
                f"engine_workers is {self.engine_workers!r}, expected KIND=VALUE.",
                "Give image=NAME, pool=HOST:PORT or command=PATH.",
            )

    @property
    def workers(self) -> tuple[str, str] | None:
        """Kind and value of `engine_workers`."""
        kind, _, value = (self.engine_workers or "").partition("=")
        return (kind, value) if kind else None
