"""The bottleneck of a training, in one sentence with a number; without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from darkroom import storage
from darkroom.runtime.json_values import format_json
from darkroom.runtime.table import Table

VERDICT_JSON, VERDICT_MARKDOWN = "input.json", "input.md"
# A training that waits less than this would not become noticeably faster.
BOUND_SHARE = 0.05
_READ, _PARSE, _DECODE, _RESIZE, _BATCH, _AUGMENT = STAGES = (
    "read",
    "parse",
    "decode",
    "resize",
    "batch",
    "augment",
)
_ACTIVITIES = {
    _READ: "reading",
    _PARSE: "parsing",
    _DECODE: "decoding",
    _RESIZE: "resizing",
    _BATCH: "batching",
    _AUGMENT: "augmenting",
}


@dataclass(frozen=True)
class StageCosts:
    """The costs of the stages of an input pipeline.

    Attributes:
        seconds: Seconds per image for each stage, with all threads and nothing else running.
    """

    seconds: Mapping[str, float]

    @property
    def total_seconds(self) -> float:
        """Seconds per image for all stages together."""
        return sum(self.seconds.values())

    @property
    def slowest(self) -> str:
        """The stage that costs the most."""
        return max(self.seconds, key=lambda name: self.seconds[name])


@dataclass(frozen=True)
class InputVerdict:
    """Whether input slows down a training, and what to do.

    Attributes:
        sentence: The verdict for a person.
        waiting_share: Share of the training's time in which it waited for input, 0 to 1.
        images_per_second: Images that the training takes per second.
        stages: Microseconds per image for each stage, if they were measured.
        speedup: How many times as fast the training would be with the advice; 1 without advice.
    """

    sentence: str
    waiting_share: float
    images_per_second: float
    stages: Mapping[str, float] | None
    speedup: float

    def to_dict(self) -> dict[str, Any]:
        """Returns the verdict as values that JSON knows."""
        stages = None if self.stages is None else {n: round(v, 1) for n, v in self.stages.items()}
        return {
            "verdict": self.sentence,
            "waiting_share": round(self.waiting_share, 4),
            "images_per_second": round(self.images_per_second, 1),
            "microseconds_an_image": stages,
            "speedup": round(self.speedup, 2),
        }


def judge_input(
    waiting_share: float,
    images_per_second: float,
    costs: StageCosts | None = None,
) -> InputVerdict:
    """Says whether input slows down a training, which stage of it, and what to change.

    Args:
        waiting_share: Share of the training's time in which it waited for input, 0 to 1.
        images_per_second: Images that the training takes per second; 0 if there were too few images
            to measure it.
        costs: The costs of the stages, if they were measured.
    """
    stages = None if costs is None else {n: s * 1e6 for n, s in costs.seconds.items()}
    if not images_per_second:
        sentence = "Too few batches to tell whether input holds this training back."
        return InputVerdict(sentence, waiting_share, images_per_second, stages, 1.0)
    rate = f"{images_per_second:,.0f} images/s"
    if waiting_share < BOUND_SHARE:
        sentence = f"Not input-bound: {waiting_share:.1%} of the time waiting for input, {rate}."
        return InputVerdict(sentence, waiting_share, images_per_second, stages, 1.0)
    head = f"Input-bound {waiting_share:.0%} at {rate}"
    if costs is None or not costs.total_seconds:
        sentence = f"{head}; use --profile-input to see which stage."
        return InputVerdict(sentence, waiting_share, images_per_second, stages, 1.0)
    advice, left_share = _advise(costs)
    # While the training waits, input takes all the time. A step still has to be computed.
    speedup = 1 / max(1 - waiting_share, left_share)
    about = f" for about {speedup:.1f}x" if left_share < 1 else ""
    sentence = f"{head}: {_ACTIVITIES[costs.slowest]}; {advice}{about}."
    return InputVerdict(sentence, waiting_share, images_per_second, stages, speedup)


def _advise(costs: StageCosts) -> tuple[str, float]:
    """Returns what to change, and the share of its time that input would then take."""
    slowest = costs.slowest
    left_share = 1 - costs.seconds[slowest] / costs.total_seconds
    if slowest == _READ:
        return "keep records in memory (--record-cache memory), or on a faster disk", left_share
    if slowest == _AUGMENT:
        return "augment less (crop and flip cost the least)", left_share
    if slowest == _DECODE:
        return "store smaller images (convert --resize-short-side), or give it more cores", 1.0
    return "give it more cores (tf.data service: darkroom dataservice)", 1.0


def format_input_verdict(verdict: InputVerdict) -> str:
    """Returns the verdict as Markdown."""
    lines = [
        "# Input",
        "",
        verdict.sentence,
        "",
        f"- images/s: {verdict.images_per_second:,.0f}",
        f"- time waiting for input: {verdict.waiting_share:.1%}",
    ]
    if verdict.stages:
        rows = [(name, f"{value:,.0f}") for name, value in verdict.stages.items()]
        lines += ["", Table("", ("stage", "microseconds an image"), rows).to_markdown()]
    return "\n".join(lines) + "\n"


def write_input_verdict(folder: str, verdict: InputVerdict) -> None:
    """Writes `input.json` and `input.md` into a folder."""
    storage.write_bytes(storage.join(folder, VERDICT_JSON), format_json(verdict.to_dict()))
    storage.write_bytes(
        storage.join(folder, VERDICT_MARKDOWN), format_input_verdict(verdict).encode()
    )
