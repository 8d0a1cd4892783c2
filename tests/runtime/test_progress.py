import io
import os
import subprocess
import sys
import threading

import pytest

from darkroom.errors import StorageError
from darkroom.runtime import progress
from darkroom.runtime.display import PlainProgress, RichProgress
from darkroom.runtime.notebook import CellProgress
from darkroom.runtime.streams import redirect_output


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def plain():
    stream, clock = io.StringIO(), Clock()
    with progress.use(PlainProgress(stream, clock=clock)):
        yield stream, clock


def test_without_a_sink_nothing_happens():
    with progress.step("Nothing", 1, 2):
        progress.advance(1, 2, "images")
        progress.note("text")


def test_plain_lines_show_steps_and_counts(plain):
    stream, clock = plain
    with progress.step("ImageToTFRecord", 3, 10):
        progress.advance(100, 1801, "images")
        clock.now += 2
        progress.advance(1200, 1801, "images")
        clock.now += 1.9
        progress.advance(1700, 1801, "images")
        clock.now += 0.1
        progress.advance(1800, 1801, "images")
        progress.advance(1801, 1801, "images")
    with progress.step("Pusher", 10, 10):
        clock.now += 75
    assert stream.getvalue().splitlines() == [
        "ImageToTFRecord [3/10] 1,200/1,801 images 600/s",
        "ImageToTFRecord [3/10] 1,800/1,801 images 450/s",
        "ImageToTFRecord [3/10] done in 4.0 s, 1,801 images 450/s",
        "Pusher [10/10] done in 1 min 15 s",
    ]


@pytest.mark.parametrize(
    ("reports", "shown"),
    [
        # A report: the seconds since the last one, and what `advance` gets.
        pytest.param(
            [
                (2, 0, 20, "rows", 0, "0 of 2"),
                (2, 10, 20, "rows", 0, "1 of 2"),
                (0, 20, 20, "rows"),
            ],
            ["A 0 of 2", "A 10/20 rows 5.0/s, 1 of 2", "A done in 4.0 s, 20 rows 10/s"],
            id="a detail is shown as long as the step runs",
        ),
        pytest.param(
            [(2, 10, 5_000, "images"), (48, 3_000, 5_000, "images"), (10, 5_000, 5_000, "images")],
            [
                "A 10/5,000 images 5.0/s, 16 min 38 s left",
                "A 3,000/5,000 images 60/s, 33 s left",
                *("A 5,000/5,000 images 83/s", "A done in 1 min 0 s, 5,000 images 83/s"),
            ],
            id="the time that is left is worth a word from ten seconds on",
        ),
        pytest.param(
            [(0, 7, 107, "MB"), (2, 107, 107, "MB")],
            ["A 107/107 MB, 54 MB/s", "A done in 2.0 s, 107 MB, 54 MB/s"],
            id="a speed has the measure of its amount",
        ),
        pytest.param(
            [(4, 9, 10, "epochs", 8), (4, 10, 10, "epochs", 8)],
            [
                *("A 9/10 epochs 0.2/s", "A 10/10 epochs 0.2/s"),
                "A done in 8.0 s, 10 epochs, 8 of them done before, 0.2/s",
            ],
            id="what an earlier run has done is not part of the rate",
        ),
        pytest.param(
            # A job may take a while before it begins.
            [(16, 70, 120, "rows", 70), (4, 120, 120, "rows", 70)],
            [
                *("A 70/120 rows", "A 120/120 rows 12/s"),
                "A done in 20.0 s, 120 rows, 70 of them done before, 2.5/s",
            ],
            id="the last rate belongs to the time that is shown",
        ),
        pytest.param(
            [(0, 5, 5, "rows", 5), (4, 5, 5, "rows", 5)],
            ["A 5/5 rows", "A done in 4.0 s, 5 rows, 5 of them done before"],
            id="a step with nothing left to do has no rate",
        ),
        pytest.param(
            [(0, 9, 10, "images"), (3, 8, 10, "images"), (0, 1, 2, "epochs"), (3, 2, 2, "epochs")],
            ["A 9/10 images 3.0/s", "A 2/2 epochs 0.7/s", "A done in 6.0 s, 2 epochs 0.7/s"],
            id="a count never decreases, and a new unit starts at zero",
        ),
        pytest.param(
            [(25, 1, 1, "epochs")],
            ["A 1/1 epoch", "A done in 25.0 s, 1 epoch"],
            id="one is singular, and a slow step has no rate",
        ),
        pytest.param(
            [(20, 1, 1, "epochs")],
            ["A 1/1 epoch 0.1/s", "A done in 20.0 s, 1 epoch 0.1/s"],
            id="the slowest rate",
        ),
    ],
)
def test_counts_become_lines(plain, reports, shown):
    stream, clock = plain
    with progress.step("A"):
        for seconds, *report in reports:
            clock.now += seconds
            progress.advance(*report)
    assert stream.getvalue().splitlines() == shown


def test_a_remark_is_shown_at_the_end_of_its_step(plain):
    stream, clock = plain
    with progress.step("Trainer"):
        progress.remark("reused")
        clock.now += 1
    assert stream.getvalue() == "Trainer done in 1.0 s, reused\n"


def test_a_failed_step_is_shown_and_its_error_is_raised(plain):
    stream, clock = plain

    def train():
        with progress.step("Trainer"):
            progress.advance(1, 4, "epochs")
            clock.now += 4
            raise KeyError

    with pytest.raises(KeyError):
        train()
    assert stream.getvalue() == "Trainer failed after 4.0 s, 1/4 epochs 0.2/s\n"


def test_steps_nest_and_notes_are_made_visible(plain):
    stream, clock = plain
    with progress.step("Convert", 1, 2):
        with progress.step("write"):
            progress.advance(5, None, "shards")
            clock.now += 1
        progress.note("bad \x1b[2J name")
    assert stream.getvalue().splitlines() == [
        "Convert [1/2]: write done in 1.0 s, 5 shards 5.0/s",
        "bad <U+001B>[2J name",
        "Convert [1/2] done in 1.0 s",
    ]


def test_use_restores_the_sink_before():
    outer, inner = io.StringIO(), io.StringIO()
    with progress.use(PlainProgress(outer)):
        with progress.use(PlainProgress(inner)):
            progress.note("in")
        progress.note("out")
        with pytest.raises(KeyError), progress.use(PlainProgress(inner)):
            raise KeyError
        progress.note("out again")
    progress.note("nobody")
    assert (outer.getvalue(), inner.getvalue()) == ("out\nout again\n", "in\n")


def test_many_threads_report_progress(plain):
    stream, clock = plain
    with progress.step("Work"):
        threads = [
            threading.Thread(
                target=lambda: [progress.advance(n, 5000, "rows") for n in range(5001)]
            )
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        clock.now += 1
    assert stream.getvalue() == "Work done in 1.0 s, 5,000 rows 5,000/s\n"


def test_rich_shows_ticks_on_a_terminal(monkeypatch):
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    stream = Terminal()
    with progress.use(progress.make_sink(stream)):
        with progress.step("Ingest [red]", 1, 2):
            for done in range(100):
                progress.advance(done, 100, "images")
        with pytest.raises(KeyError), progress.step("Trainer", 2, 2):
            raise KeyError
        progress.note("[bold]done :smile:")
    text = stream.getvalue()
    assert "✓ Ingest [red] [1/2]" in text
    assert "99/100 images" in text
    assert "✗ Trainer [2/2]" in text
    assert "[bold]done :smile:" in text
    assert text.endswith("\x1b[?25h") or "\x1b[?25h" in text  # The cursor is back.


def test_the_sink_depends_on_the_stream(monkeypatch):
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    monkeypatch.setenv("GIT_PAGER", "less")
    assert isinstance(progress.make_sink(io.StringIO()), PlainProgress)
    assert isinstance(progress.make_sink(Terminal()), RichProgress)


@pytest.mark.parametrize(
    "variables",
    [
        {"JPY_PARENT_PID": "7"},
        {"TERM": "xterm-color", "PAGER": "cat", "GIT_PAGER": "cat"},
    ],
)
def test_what_a_notebook_starts_does_not_draw_although_it_has_a_terminal(monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    with progress.use(progress.make_sink(stream)), progress.step("Training", 1, 2):
        for done in range(100):
            progress.advance(done, 100, "epochs")
    assert "\x1b" not in stream.getvalue()
    assert len(stream.getvalue().splitlines()) == 1


class Screen:
    """What a notebook shows, and how often it got something."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, str]] = []

    def __call__(self, data: dict[str, str], is_update: bool) -> None:
        assert is_update == bool(self.shown)
        self.shown.append((data["text/plain"], data["text/html"]))


def test_a_cell_has_one_line_that_is_updated():
    screen, clock = Screen(), Clock()
    with progress.use(CellProgress(screen, 0.25, clock)):
        with progress.step("Converting <b>"):
            for done in range(100):
                clock.now += 0.125
                progress.advance(done, 200, "rows")
            clock.now += 1
            progress.advance(200, 200, "rows")
        progress.note("Cached in \u202e<i>")
        with pytest.raises(KeyError), progress.step("Report"):
            raise KeyError
    assert len(screen.shown) == 56  # of 106 reports
    texts, pages = zip(*screen.shown, strict=True)
    assert texts[0] == "Converting <b> …"
    assert "Converting <b> █████░░░░░░░░░░░░░░░ 51/200 rows 8.0/s, 19 s left" in texts
    assert texts[-3] == "Cached in <U+202E><i>"
    assert texts[-1] == "Report failed after 0.0 s\nCached in <U+202E><i>"
    assert any('<progress max="1" value="0.2550"></progress>' in page for page in pages)
    assert not any("<b>" in page or "<i>" in page or "\u202e" in page for page in pages)


def test_a_cell_keeps_what_steps_remark_at_their_end():
    screen, clock = Screen(), Clock()
    with progress.use(CellProgress(screen, 0.25, clock)), progress.step("Training"):
        for number in (1, 2):
            with progress.step(f"epoch {number}/2"):
                clock.now += 3
                progress.remark(f"loss 0.{number}")
        with progress.step("Storing"):
            pass
    lines = [f"Training: epoch {number}/2 done in 3.0 s, loss 0.{number}" for number in (1, 2)]
    assert screen.shown[-1][0].splitlines() == ["Training done in 6.0 s", *lines]


def test_only_a_display_that_is_drawn_again_is_live(monkeypatch):
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    monkeypatch.setenv("GIT_PAGER", "less")
    assert not progress.is_live()
    for sink, live in (
        (PlainProgress(io.StringIO()), False),
        (RichProgress(Terminal()), True),
        (CellProgress(Screen()), True),
    ):
        with progress.use(sink):
            assert progress.is_live() == live


SCRIPT = """
import sys, types
from darkroom.runtime import progress
if "kernel" in sys.argv:
    shell = types.SimpleNamespace(kernel=object())
    class DisplayHandle:
        def display(self, data, raw): print("shown", data["text/plain"])
        update = display
    sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
    sys.modules["IPython.display"] = types.SimpleNamespace(DisplayHandle=DisplayHandle)
@progress.shown
def work(number):
    "Works."
    with progress.step("Work"):
        return number
assert (work(3), work.__name__, work.__doc__) == (3, "work", "Works.")
print("rich", "rich" in sys.modules)
"""


@pytest.mark.parametrize(
    ("argument", "variable", "out", "err"),
    [
        ("script", "1", "rich False\n", "Work done in 0.0 s\n"),
        ("kernel", "", "shown Work …\nshown Work done in 0.0 s\nrich False\n", ""),
        ("kernel", "0", "rich False\n", ""),
    ],
)
def test_public_functions_show_progress_in_a_notebook_or_if_asked(argument, variable, out, err):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, argument],
        capture_output=True,
        text=True,
        env={**os.environ, progress.PROGRESS_VARIABLE: variable},
    )
    assert (done.stdout, done.stderr, done.returncode) == (out, err, 0)


REDIRECT = """
import ctypes, logging, os, subprocess, sys
from darkroom.runtime.streams import redirect_output
logging.basicConfig()
print("before")
try:
    with redirect_output(sys.argv[1]) as terminal:
        print("python")
        print("python error", file=sys.stderr)
        logging.warning("logging")
        os.write(2, b"descriptor\\n")
        ctypes.CDLL(None).puts(b"from C")
        subprocess.run(["echo", "child"], check=True)
        terminal.write("progress \\u2713 %s\\n" % terminal.isatty())
        raise KeyError
except KeyError:
    print("after")
    print("after error", file=sys.stderr)
"""


def test_redirect_output_takes_every_writer(tmp_path):
    log = tmp_path / "deep" / "run.log"
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    result = subprocess.run(
        [sys.executable, "-c", REDIRECT, str(log)],
        capture_output=True,
        env=environment,
        check=True,
    )
    assert result.stdout.decode() == "before\nprogress ✓ False\nafter\n"
    assert result.stderr.decode() == "after error\n"
    assert sorted(log.read_text().splitlines()) == sorted(
        ["python", "python error", "WARNING:root:logging", "descriptor", "from C", "child"]
    )


def test_redirect_output_keeps_the_terminal(tmp_path):
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", REDIRECT, str(tmp_path / "log")], stdout=follower, stderr=follower
    ) as process:
        os.close(follower)
        process.wait()
        text = os.read(leader, 10_000).decode(errors="replace")
        os.close(leader)
    assert "True" in text
    assert "descriptor" not in text


def test_redirect_output_follows_no_link_and_names_an_unusable_file(tmp_path):
    (tmp_path / "thesis.txt").write_bytes(b"mine")
    (tmp_path / "log.txt").symlink_to(tmp_path / "thesis.txt")
    for name in ("log.txt", "thesis.txt/log"):
        with (
            pytest.raises(StorageError, match=rf"log file .*{name}. cannot be written"),
            redirect_output(tmp_path / name),
        ):
            pass
    assert (tmp_path / "thesis.txt").read_bytes() == b"mine"


def test_nothing_is_shown_where_nobody_wants_it(monkeypatch):
    monkeypatch.setenv(progress.PROGRESS_VARIABLE, "0")
    stream = io.StringIO()
    with progress.use(PlainProgress(stream)), progress.step("Read"):
        progress.advance(1, 2, "images")
        progress.note("half")
        assert not progress.is_shown()
    assert stream.getvalue() == ""
