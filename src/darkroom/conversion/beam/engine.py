"""The hook for engines, which run the job of a conversion elsewhere.

A conversion in this process or on Dataflow needs none. `darkroom.engines` has those that exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    from darkroom.options.targets import EngineOptions


@dataclass(frozen=True)
class EngineJob:
    """A job, as it was when its engine was asked.

    Attributes:
        id: The engine's own name of it.
        state: The engine's word, as RUNNING.
        has_ended: Whether nothing of it runs any more.
        stop: The command that ends it.
    """

    id: str
    state: str
    has_ended: bool
    stop: str


class Engine(Protocol):
    """An engine."""

    @property
    def name(self) -> str:
        """As in the option `engine`; empty if it is known by its runner only."""

    @property
    def runner(self) -> str:
        """Beam's name of its runner."""

    def find_options(self, engine: EngineOptions, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns Beam's options for the engine: those that are found out, and those given.

        Args:
            engine: Its address, and how darkroom runs there.
            given: Beam's options by name; they replace options that would be found out.

        Raises:
            UsageError: An option is missing, or does not fit the engine.
            StorageError: The engine does not answer, or cannot run a job.
        """

    def check(self, options: PipelineOptions) -> None:
        """Checks that the engine answers, before any work is done.

        Raises:
            StorageError: It does not answer, or something that it needs is missing.
            UsageError: An option cannot be used.
        """

    def find_address(self, options: Mapping[str, Any]) -> str:
        """Returns where the engine can be asked for a job; empty if it cannot."""

    def find_job(self, address: str, name: str) -> EngineJob | None:
        """Returns the newest job whose name contains `name`; None if the engine knows none.

        Raises:
            StorageError: The engine does not answer.
        """

    def run(self, pipeline: beam.Pipeline, job_name: str) -> None:
        """Runs a pipeline to its end. If this is interrupted or fails, the job is cancelled.

        Args:
            pipeline: A whole pipeline.
            job_name: A name that no other job has.

        Raises:
            DarkroomError: The job failed.
        """


_load: Callable[[], Sequence[Engine]] = tuple


def offer_engines(load: Callable[[], Sequence[Engine]]) -> None:
    """Sets the function that returns all engines. It is called when a runner is not Beam's own."""
    global _load
    _load = load


def list_engines() -> Sequence[Engine]:
    """Returns all engines."""
    return _load()
