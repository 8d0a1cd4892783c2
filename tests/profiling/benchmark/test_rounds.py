"""`darkroom benchmark input`: every way reads the same images, and what is measured is right."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import darkroom
from darkroom.cli.commands import main
from darkroom.errors import DataError, StorageError, UsageError
from darkroom.options.conversion import ConversionOptions
from darkroom.profiling.benchmark import rounds as input_benchmark
from darkroom.profiling.benchmark.chart import (
    BAR_WIDTHS,
    COLORS,
    HEAD_HEIGHT,
    ROW_HEIGHT,
    WIDTH,
    Bars,
    draw_chart,
    list_bar_places,
)
from darkroom.profiling.benchmark.comparison import (
    InputComparison,
    WayResult,
    advise,
    format_comparison,
    format_markdown,
)
from darkroom.profiling.benchmark.rounds import BenchmarkOptions, measure_idle, measure_rate
from darkroom.profiling.benchmark.sample import InputSample, open_sample
from darkroom.profiling.benchmark.ways import WAYS, Way, open_fused, open_preloaded

pytestmark = pytest.mark.tensorflow

NUM_IMAGES, NUM_LABELS, BATCH_SIZE, IMAGE_SIZE = 50, 5, 16, (24, 32)
OPTIONS = BenchmarkOptions(image_size=IMAGE_SIZE, batch_size=BATCH_SIZE, images=40)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JPEGs, each in one color that tells its label: red is 40 times the label."""
    root = tmp_path_factory.mktemp("benchmark")
    for number in range(NUM_IMAGES):
        label = number % NUM_LABELS
        path = root / "images" / f"label-{label}" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (64, 48), (40 * label, 100, number)).save(path, quality=95)
    darkroom.convert(root / "images", root / "dataset", split_ratios="80/10/10")
    return root / "dataset"


@pytest.fixture(scope="module")
def sample(dataset: Path) -> Iterator[InputSample]:
    with open_sample(dataset, 37, OPTIONS.input_options) as opened:
        yield opened


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_every_way_gives_each_image_once_in_batches(way: Way, sample: InputSample):
    assert way.find_obstacle(sample) == ""
    labels: list[int] = []
    for images, numbers in way.open(sample):
        images, numbers = np.asarray(images), np.asarray(numbers)
        assert (images.dtype, numbers.dtype) == (np.uint8, np.int64)
        assert images.shape == (len(numbers), *IMAGE_SIZE, 3)
        assert np.abs(images[..., 0] - 40.0 * numbers[:, None, None]).max() < 6
        labels += numbers.tolist()
    assert len(labels) == len(sample.paths) == 37
    assert Counter(labels) == Counter(sample.labels)


def test_passes_make_one_epoch_of_several(sample: InputSample):
    thrice = replace(sample, passes=3)
    for way in WAYS:
        assert sum(len(images) for images, _ in way.open(thrice)) == 3 * 37, way.name


def test_ways_that_do_not_work_are_left_out_with_the_reason(sample: InputSample):
    obstacles = {
        way.open: way.find_obstacle(replace(sample, memory_bytes=1 << 60, is_jpeg=False))
        for way in WAYS
    }
    assert "more than a quarter of" in obstacles[open_preloaded]
    assert obstacles[open_fused] == "only JPEGs can be decoded in part"


class FakeTime:
    """A clock that moves only when something waits."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def make_batches(self, seconds: float, count: int) -> Iterator[tuple[list[int], None]]:
        for _ in range(count):
            self.wait(seconds)
            yield [0] * 10, None


class _Batches:
    """Each iteration is a short epoch."""

    def __init__(self, time: FakeTime, seconds: float) -> None:
        self._time, self._seconds = time, seconds

    def __iter__(self) -> Iterator[tuple[list[int], None]]:
        return self._time.make_batches(self._seconds, 3)


@pytest.mark.parametrize(("step_seconds", "idle"), [(0.05, 0.2), (0.0125, 0.5), (0.1125, 0.1)])
def test_idle_is_the_share_of_waiting(step_seconds: float, idle: float):
    time = FakeTime()
    found = measure_idle(_Batches(time, 0.0125), step_seconds, clock=time, sleep=time.wait)
    assert found == pytest.approx(idle)


def test_the_rate_is_that_of_batches_taken_as_they_come():
    time = FakeTime()
    assert measure_rate(_Batches(time, 1 / 64), 200, clock=time) == 640
    assert time.now == 100 + 2 / 64 + 0.5
    time = FakeTime()
    assert measure_rate(_Batches(time, 1 / 64), 1280, clock=time) == 640
    assert time.now == 100 + 2 / 64 + 2
    time = FakeTime()
    assert measure_rate(_Batches(time, 1 / 64), 10**9, clock=time) == 640
    assert time.now == 100 + 2 / 64 + 3


def _make_result(name: str, *rounds: float, stored: bool = False, advice: str = "so") -> WayResult:
    return WayResult(
        name=name,
        advice=advice,
        is_stored=stored,
        images_per_second=rounds[1],
        idle_share=0.25,
        prepare_seconds=1.5,
        rounds=rounds,
    )


DARKROOM = _make_result("darkroom", 100.0, 200.0, 400.0, advice="darkroom.load")
SMALLER = _make_result("small", 210.0, 420.0, 840.0, stored=True, advice="--resize-short-side 256")
COMPARISON = InputComparison(
    directory="data",
    images=40,
    mean_bytes=34_600,
    image_size=(24, 32),
    batch_size=16,
    cores=2,
    step_seconds=0.0125,
    results=(
        DARKROOM,
        SMALLER,
        WayResult(name="raw", advice="", is_stored=True, skipped="too large"),
    ),
)


def test_advice_compares_within_rounds():
    faster = _make_result("files", 120.0, 240.0, 480.0)
    noisy = _make_result("+ fused crop", 99.0, 399.0, 801.0)
    service = _make_result("service", 900.0, 900.0, 900.0, advice="")
    assert advise([noisy, DARKROOM, SMALLER, service]) == (
        "Fastest without other storage: darkroom (darkroom.load), 200 images/s; "
        "stored with --resize-short-side 256: 2.1 times that."
    )
    assert advise([faster, DARKROOM, SMALLER]) == (
        "Fastest without other storage: files (so), 240 images/s; "
        "stored with --resize-short-side 256: 1.8 times that."
    )
    assert advise([DARKROOM]).endswith("200 images/s; no other storage is faster.")


def test_the_table_has_a_line_for_each_way():
    comparison = replace(COMPARISON, images=128)
    assert format_comparison(comparison).splitlines() == [
        "128 images of 35 kB to batches of 16 x 24 x 32, 2 cores; step 12.5 ms",
        "",
        "way       images/s  to darkroom  idle  prepared in",
        "darkroom       200         1.00   25%        1.5 s",
        "small          420         2.10   25%        1.5 s",
        "raw       left out: too large",
        "",
        advise(comparison.results),
    ]
    assert comparison.to_dict()["caution"] == ""


def test_a_caution_about_too_few_images_comes_before_the_advice():
    comparison = replace(COMPARISON, images=127)
    caution = (
        "Too few images to tell which way is fastest: 127 are fewer than 8 batches of 16. "
        "Use 128 or more (--images, from a dataset that has them), or smaller batches."
    )
    ending = ["", caution, "", advise(comparison.results)]
    assert format_comparison(comparison).splitlines()[-4:] == ending
    assert format_markdown(comparison).splitlines()[-4:] == ending
    assert comparison.to_dict()["caution"] == caution


def test_bars_are_as_long_as_their_values():
    rows = [Bars("a", (50.0, 0.5), ("50", "50%")), Bars("b", (), ("left out",))]
    rows.append(Bars("c", (200.0, 0.125), ("200", "12%"), is_marked=True))
    with Image.open(io.BytesIO(draw_chart("title", ("x", "y"), rows, (200.0, 1.0)))) as picture:
        assert picture.format == "PNG"
        pixels = np.asarray(picture.convert("RGB"))
    assert pixels.shape == (HEAD_HEIGHT + 3 * ROW_HEIGHT + 16, WIDTH, 3)
    lengths = []
    for row in range(3):
        line = pixels[HEAD_HEIGHT + row * ROW_HEIGHT + ROW_HEIGHT // 2]
        lengths.append([int((line == color).all(axis=1).sum()) for color in COLORS])
    assert lengths == [
        [BAR_WIDTHS[0] // 4, BAR_WIDTHS[1] // 2],
        [0, 0],
        [BAR_WIDTHS[0], BAR_WIDTHS[1] // 8],
    ]
    first = pixels[HEAD_HEIGHT + ROW_HEIGHT // 2]
    assert [int((first == color).all(axis=1).argmax()) for color in COLORS] == [*list_bar_places()]


def test_a_folder_that_cannot_be_written_is_an_error_before_measuring(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
):
    def measure(*_: object) -> InputComparison:
        raise AssertionError("measured")

    monkeypatch.setattr(input_benchmark, "compare_input", measure)
    (tmp_path / "file").write_text("mine")
    command = ["benchmark", "input", str(dataset), "--output-dir"]
    assert main([*command, str(tmp_path / "file")]) == StorageError.exit_code
    assert capsys.readouterr().err.splitlines() == [
        f"darkroom: The folder {tmp_path}/file for picture and tables cannot be written to: "
        "it is a file.",
        "Choose another folder with --output-dir.",
    ]
    assert main([*command, str(tmp_path / "file" / "below")]) == StorageError.exit_code
    assert "cannot be written to: Not a directory." in capsys.readouterr().err
    assert main([*command, "/proc"]) == StorageError.exit_code
    assert "The folder /proc for picture" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


def test_pictures_and_tables_of_the_user_are_not_replaced(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
):
    monkeypatch.setattr(input_benchmark, "compare_input", lambda *_: COMPARISON)
    command = ["benchmark", "input", str(dataset), "--output-dir", str(tmp_path / "out")]
    assert main(command) == 0
    changed = replace(COMPARISON, images=7)
    monkeypatch.setattr(input_benchmark, "compare_input", lambda *_: changed)
    assert main(command) == 0
    assert json.loads((tmp_path / "out/input.json").read_text())["images"] == 7

    def fail(*_: object) -> InputComparison:
        pytest.fail("it was measured before the folder was checked")

    monkeypatch.setattr(input_benchmark, "compare_input", fail)
    (tmp_path / "out/input.md").write_text("mine")
    capsys.readouterr()
    before = sorted((tmp_path / "out").iterdir())
    assert main(command) == 4
    assert "did not write, or that changed since: input.md.\n" in capsys.readouterr().err
    assert (tmp_path / "out/input.md").read_text() == "mine"
    assert sorted((tmp_path / "out").iterdir()) == before


def test_measurements_are_shown_even_if_somebody_took_their_place(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
):
    def measure(*_: object) -> InputComparison:
        (tmp_path / "input.md").write_text("mine")
        return COMPARISON

    monkeypatch.setattr(input_benchmark, "compare_input", measure)
    command = ["benchmark", "input", str(dataset), "--output-dir", str(tmp_path), "--json"]
    assert main(command) == 4
    assert json.loads(capsys.readouterr().out)["images"] == COMPARISON.images
    assert (tmp_path / "input.md").read_text() == "mine"


def test_measurements_are_shown_even_if_they_cannot_be_written(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
):
    out = tmp_path / "out"

    def measure(*_: object) -> InputComparison:
        assert list(out.iterdir()) == []
        out.rmdir()
        out.write_text("in the way")
        return COMPARISON

    monkeypatch.setattr(input_benchmark, "compare_input", measure)
    command = ["benchmark", "input", str(dataset), "--output-dir", str(out)]
    assert main(command) == StorageError.exit_code
    shown = capsys.readouterr()
    assert shown.out.strip() == format_comparison(COMPARISON)
    assert f"{out} cannot be read or written: File exists." in shown.err
    out.unlink()
    assert main([*command, "--json"]) == StorageError.exit_code
    found = json.loads(capsys.readouterr().out)
    error = found.pop("error")
    assert error["message"] == f"{out} cannot be read or written: File exists."
    assert (error["code"], bool(error["hint"])) == ("environment", True)
    assert found == json.loads(json.dumps(COMPARISON.to_dict()))


@pytest.mark.slow
def test_the_command_writes_table_and_picture(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
):
    for name, seconds in {
        "_LEAST_SECONDS": 0.01,
        "_MOST_SECONDS": 0.05,
        "_IDLE_SECONDS": 0.05,
    }.items():
        monkeypatch.setattr(input_benchmark, name, seconds)
    monkeypatch.setattr(input_benchmark, "_ROUNDS", 1)
    command = ["benchmark", "input", str(dataset), "--output-dir", str(tmp_path / "out"), "--json"]
    options = ["--image-size", "24x32", "--batch-size", "16", "--images", "20"]
    assert main([*command, *options, "--step-seconds", "0.004"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert found["caution"].startswith("Too few images")
    assert found["caution"] in shown.err
    assert json.loads((tmp_path / "out" / "input.json").read_text()) == found
    assert [each["name"] for each in found["results"]] == [
        way.name.format(short_side=37) for way in WAYS
    ]
    for each in found["results"]:
        assert each["skipped"] == ""
        assert each["images_per_second"] > 0
        assert 0 <= each["idle_share"] < 1
    assert (found["images"], found["step_seconds"], found["image_size"]) == (20, 0.004, [24, 32])
    table = (tmp_path / "out" / "input.md").read_text()
    assert all(f"\n| {each['name']} | " in table for each in found["results"])
    assert table.strip().endswith(found["advice"])
    with Image.open(tmp_path / "out" / "input.png") as picture:
        assert picture.size == (WIDTH, HEAD_HEIGHT + len(WAYS) * ROW_HEIGHT + 16)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"images": 0}, "images is 0, expected a whole number"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"image_size": (0, 9)}, "image_size is"),
        ({"step_seconds": -1.0}, r"step_seconds is -1\.0, expected a number from 0 to 60"),
    ],
)
def test_wrong_options_are_errors(values: dict[str, object], message: str):
    with pytest.raises(UsageError, match=message):
        BenchmarkOptions(**values)


def test_a_directory_without_images_in_files_is_an_error(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["benchmark", "input", str(tmp_path)]) == DataError.exit_code
    assert "is not a dataset: it has no dataset.json" in capsys.readouterr().err
    (tmp_path / "table.csv").write_text("weight,label\n1,a\n2,b\n")
    columns = {"weight": "integer", "label": "string_label"}
    darkroom.convert(tmp_path / "table.csv", tmp_path / "table", columns=columns)
    assert main(["benchmark", "input", str(tmp_path / "table")]) == DataError.exit_code
    assert "have no image/encoded" in capsys.readouterr().err
    Image.new("RGB", (8, 8)).save(tmp_path / "image.png")
    (tmp_path / "images.csv").write_text("image_uri,label\nimage.png,a\n")
    darkroom.convert(
        tmp_path / "images.csv", tmp_path / "raw", options=ConversionOptions(encoding="raw")
    )
    assert main(["benchmark", "input", str(tmp_path / "raw")]) == DataError.exit_code
    assert "images of the format RAW, expected JPEG or PNG" in capsys.readouterr().err
