"""A job outlives its client while another run takes the output: one dataset is left, whole.

The first run's client is interrupted as soon as its job has begun. The job stops before one of its
accesses to storage, the second run converts, and the job goes on to its end. Then the second run is
stopped, too, while the job ends.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.interleaving import Actor, count_access, watch_disk
from tests.remote.conftest import hurry, s3, s3_server  # noqa: F401  fixtures

import darkroom
from darkroom import storage
from darkroom.conversion.beam import run
from darkroom.conversion.shards.shard import write_shard
from darkroom.conversion.shards.writing import WriteJob
from darkroom.errors import DarkroomError
from darkroom.options.conversion import ConversionOptions
from darkroom.storage.parquet import KeptTables

_ELSEWHERE = {
    "runner": "PortableRunner",
    "options": ConversionOptions(beam_options={"job_endpoint": "embed"}),
    "columns": {"split": "split", "label": "string_label", "x": "integer"},
}
# Of the second run: another plan with another number of shards, and the same.
_OTHER, _SAME = {"seed": 7, "num_shards": 2}, {"seed": 3, "num_shards": 3}
_FIRST = _SAME


class InterruptedClientError(Exception):
    """The client ends, and its job goes on."""


def write_table(folder: str) -> str:
    """Writes a list of rows without images, so that a conversion takes milliseconds."""
    rows = "".join(f"{'TEST' if n % 4 == 3 else 'TRAIN'},{'ab'[n % 2]},{n}\n" for n in range(24))
    storage.write_bytes(f"{folder}/rows.csv", f"split,label,x\n{rows}".encode())
    return f"{folder}/rows.csv"


def run_here(write: WriteJob, *_: object) -> None:
    """Does what workers elsewhere would, in this thread."""
    write.commit([write_shard(task, None, KeptTables()) for task in write.tasks])


def begin_job(patch: pytest.MonkeyPatch, source: str, output: str) -> Callable[[], None]:
    """Starts the first run, and interrupts its client; returns its job."""
    jobs: list[WriteJob] = []

    def submit(write: WriteJob, *_: object) -> None:
        jobs.append(write)
        raise InterruptedClientError

    with patch.context() as inner:
        inner.setattr(run, "run_job", submit)
        with pytest.raises(InterruptedClientError):
            darkroom.convert(source, output, **_FIRST, **_ELSEWHERE)
    return lambda: run_here(jobs[0])


def check_plain_output(output: str) -> None:
    """Checks that what is not a whole dataset is at least refused."""
    found = darkroom.verify(output)
    if found.findings:
        assert found.is_damaged
        with pytest.raises((DarkroomError, OSError)):
            darkroom.load(output, image_size=8)


def check_output(output: str, first: str, second: Actor, source: str, more: dict) -> None:
    """Checks that the output holds one dataset, whole, or none and a next run writes it."""
    if second.error is None:
        # What a run has reported as written stays.
        expected = {second.result.fingerprint}
    else:
        assert isinstance(second.error, DarkroomError), second.error
        expected = {first}
    if not storage.exists(f"{output}/dataset.json"):
        assert second.error is not None
        expected = {darkroom.convert(source, output, **more, **_ELSEWHERE).fingerprint}
    verified = darkroom.verify(output)
    assert verified.findings == ()
    assert verified.fingerprint in expected


class Trial:
    """Runs one interleaving after another, each in a new output."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: str, *, is_plain: bool = False) -> None:
        self._patch, self._folder, self._number = patch, folder, 0
        self._is_plain = is_plain
        self.source = write_table(folder)
        patch.setattr(run, "run_job", run_here)
        whole = darkroom.convert(self.source, f"{folder}/whole", **_FIRST, **_ELSEWHERE)
        self._first = whole.fingerprint
        actor = Actor(begin_job(patch, self.source, f"{folder}/counted"))
        actor.begin()
        assert actor.error is None
        self.steps = actor.steps
        second = Actor(lambda: self._convert(f"{folder}/second", _OTHER))
        second.begin()
        self.second_steps = second.steps

    def _convert(self, output: str, options: dict[str, Any]) -> darkroom.ConversionResult:
        return darkroom.convert(self.source, output, **options, **_ELSEWHERE)

    def run(self, stop_at: int, options: dict[str, Any], second_stops_at: int = 0) -> None:
        """Stops the job before an access, and the second run before another; the job ends first."""
        self._number += 1
        output = f"{self._folder}/out-{self._number}"
        first = Actor(begin_job(self._patch, self.source, output), stop_at)
        second = Actor(lambda: self._convert(output, options), second_stops_at)
        first.begin()
        second.begin()
        first.finish()
        second.finish()
        if first.error is not None:
            assert isinstance(first.error, DarkroomError | OSError), first.error
        if self._is_plain and storage.exists(f"{output}/dataset.json"):
            check_plain_output(output)
        else:
            check_output(output, self._first, second, self.source, options)


@pytest.fixture
def on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    watch_disk(str(tmp_path))
    return Trial(monkeypatch, str(tmp_path))


@pytest.fixture
def on_s3(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Trial:
    request.getfixturevalue("s3")
    _watch_store(monkeypatch)
    return Trial(monkeypatch, "s3://photos")


@pytest.fixture
def on_plain_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """A store without conditional writes."""
    request.getfixturevalue("s3")
    from darkroom.storage.stores.s3 import S3Store

    def replace(self: S3Store, bucket: str, name: str, data: bytes, version: str) -> None:
        self._client.put_object(Bucket=bucket, Key=name, Body=data)

    monkeypatch.setattr(S3Store, "replace", replace)
    _watch_store(monkeypatch)
    return Trial(monkeypatch, "s3://photos", is_plain=True)


def _watch_store(monkeypatch: pytest.MonkeyPatch) -> None:
    from darkroom.storage import remote, remote_files

    for module in (remote, remote_files):
        original = module.request

        def request(*arguments: Any, original: Callable[..., Any] = original) -> Any:
            count_access()
            return original(*arguments)

        monkeypatch.setattr(module, "request", request)


def _pick(steps: int, count: int, seed: int) -> list[int]:
    """Returns numbers of accesses: the first, the last, and some between."""
    between = random.Random(seed).sample(range(2, steps), min(count, steps - 2))
    return [1, *between, steps]


@pytest.mark.parametrize(
    ("place", "at_most", "random_pairs", "options"),
    [
        ("on_disk", 1, 2, _OTHER),
        pytest.param("on_disk", 2, 2, _SAME, marks=pytest.mark.long),
        pytest.param("on_s3", 0, 1, _OTHER, marks=pytest.mark.long),
        *(
            pytest.param(place, 1_000, pairs, options, marks=pytest.mark.long)
            for place, pairs in (("on_disk", 150), ("on_s3", 60), ("on_plain_store", 60))
            for options in (_OTHER, _SAME)
        ),
    ],
)
def test_a_job_that_outlives_its_client(request, place, at_most, random_pairs, options):
    trial = request.getfixturevalue(place)
    # The other run is done before the job goes on.
    steps = _pick(trial.steps, at_most, seed=1)
    for step in steps:
        trial.run(step, options)
    # The job ends while the other run is stopped.
    chosen = random.Random(2)
    for _ in range(random_pairs):
        first = chosen.randint(1, trial.steps)
        trial.run(first, options, chosen.randint(1, trial.second_steps))
    print(f"{place}: {len(steps)} of {trial.steps} accesses, and {random_pairs} pairs")
