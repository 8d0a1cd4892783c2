"""Images prepared in another process: the result is the same, and a fault rejects one row."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from darkroom.errors import RejectError
from darkroom.images import decoders, sandbox
from darkroom.images.decoders import ImagePreparer
from darkroom.images.memory import (
    MemoryBudget,
    MemoryNeededError,
    Need,
    SharedBudget,
    count_plain_jpeg_bytes,
)
from darkroom.images.prepare import PreparedImage, prepare_image, prepare_plain
from darkroom.images.sandbox import DecoderProcess, DecoderProcessError
from darkroom.options.image import ImageOptions
from darkroom.runtime import child

from ..image_forms import FORMS
from ..pictures import encode, make_photo
from ..tiff_files import make_tiff

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("decoder_process")]

OPTIONS = ImageOptions()
BOMBS = Path(__file__).parents[1] / "bad_input" / "bombs.py"

# What a decoder with a fault does with an image, by its first bytes.
FAULTY = """
import os, signal, sys, time
from darkroom.images import prepare as images
from darkroom.images import sandbox_child
def prepare(data, options, reserve):
    name = data[-5:]
    if name == b"CRASH": os.kill(os.getpid(), signal.SIGSEGV)
    if name == b"LEAVE": os._exit(3)
    if name == b"SLEEP": time.sleep(60)
    if name == b"PAUSE": os.kill(os.getpid(), signal.SIGSTOP)
    if name == b"NOISE": os.write(0, b"x" * 99)
    if name == b"RAISE": raise RuntimeError("no such luck")
    if name == b"EATER": return bytes(1 << 32)
    if name == b"KILLS": os.kill(os.getpid(), signal.SIGKILL)
    if name == b"WASTE":
        prepare.waste = getattr(prepare, "waste", b"") + bytes(40 << 20)
    if name == b"TIGHT":
        try: bytes(50 << 20)
        except MemoryError: raise images.RejectError("undecodable", "decoder error -2")
    return images.prepare_image(data, options, reserve)
sandbox_child.prepare_image = prepare
"""

# Prepares each image in a fork, which has decoded nothing before it.
ALONE = """
import os, pickle
from darkroom.images import sandbox_child
real = sandbox_child._answer
def answer(*arguments):
    reader, writer = os.pipe()
    if os.fork() == 0:
        with open(writer, "wb") as file:
            pickle.dump(real(*arguments), file)
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        found = pickle.load(file)
    os.wait()
    return found
sandbox_child._answer = answer
"""


@pytest.fixture
def photo() -> Image.Image:
    return make_photo()


@pytest.fixture
def preparer():
    preparer = ImagePreparer(OPTIONS)
    yield preparer
    preparer.close()


@pytest.fixture
def faulty(monkeypatch):
    monkeypatch.setattr(
        child, "PROGRAM", child.PROGRAM.replace("importlib.im", FAULTY + "importlib.im")
    )
    # Thirty ticks are enough for each other image, and that is the same image again.
    monkeypatch.setattr(child, "TICK_SECONDS", 0.02)
    preparer = ImagePreparer(OPTIONS)
    yield preparer
    preparer.close()


def find_children() -> list[int]:
    """Returns the running processes that this one has started."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path("/proc", pid, "stat").read_text()
            command = Path("/proc", pid, "cmdline").read_bytes()
        except OSError:
            continue
        if stat.rpartition(")")[2].split()[1] == str(os.getpid()) and b"serve(" in command:
            found.append(int(pid))
    return found


def refuse(preparer: ImagePreparer, data: bytes) -> tuple[str, str]:
    with pytest.raises(RejectError) as error:
        preparer.prepare(data)
    return error.value.reason, error.value.detail


def test_the_result_is_that_of_prepare_image(photo, preparer):
    exif = Image.Exif()
    exif[0x0112] = 6
    forms = [encode(photo, kind) for kind in ("PNG", "GIF", "BMP", "WEBP", "TIFF")]
    forms += [encode(photo.quantize(8), "PNG"), encode(photo.convert("CMYK"), "JPEG")]
    forms += [encode(photo, "JPEG", exif=exif, icc_profile=b"odd"), encode(photo, "PNG", exif=exif)]
    for data in forms:
        assert prepare_plain(data, OPTIONS) is None
        assert preparer.prepare(data) == prepare_image(data, OPTIONS)
    assert len(find_children()) == 1


def test_bytes_that_stay_are_not_sent_back(photo, preparer):
    data = encode(photo, "PNG")
    assert preparer.prepare(data).encoded is data


def test_options_apply_in_the_other_process(photo):
    options = ImageOptions(image_check="header", resize_short_side=12)
    preparer = ImagePreparer(options)
    data = encode(photo, "BMP")
    assert preparer.prepare(data) == prepare_image(data, options)
    assert preparer.prepare(data).height == 12
    preparer.close()


def test_plain_images_need_no_other_process(photo):
    exif = Image.Exif()
    exif[0x0112] = 6
    full, header = ImagePreparer(OPTIONS), ImagePreparer(ImageOptions(image_check="header"))
    for data in (
        encode(photo, "JPEG", progressive=True),
        encode(photo.convert("L"), "JPEG"),
        encode(photo, "JPEG", exif=exif),
        encode(photo, "JPEG", icc_profile=b"stays with its bytes"),
    ):
        assert full.prepare(data) == prepare_image(data, OPTIONS)
    png = encode(photo, "PNG")
    assert header.prepare(png).encoded is png
    assert refuse(full, b"")[0] == "empty"
    assert refuse(full, b"<html>")[0] == "not_an_image"
    assert find_children() == []


def test_a_reject_is_that_of_prepare_image(photo, preparer):
    data = encode(photo, "PNG")
    assert refuse(preparer, data[:-20]) == ("truncated", "it ends early")
    data = encode(photo, "BMP")
    assert refuse(preparer, data[:200])[0] == "truncated"


@pytest.mark.parametrize(
    ("name", "reason", "detail"),
    [
        (b"CRASH", "decoder_crash", "its decoder died of SIGSEGV"),
        (b"LEAVE", "decoder_crash", "its decoder ended with exit code 3"),
        (b"NOISE", "decoder_crash", "its decoder"),
        (b"RAISE", "decoder_crash", "its decoder raised RuntimeError: no such luck"),
        (b"SLEEP", "decoder_timeout", "its decoder hung and was stopped"),
        (b"EATER", "decoder_memory", "it takes more memory than its size asks for"),
    ],
)
def test_a_decoder_with_a_fault_rejects_one_row(photo, faulty, name, reason, detail):
    good = encode(photo, "BMP")
    assert faulty.prepare(good).width == 40
    found = refuse(faulty, good + name)
    assert found[0] == reason
    assert found[1].startswith(detail)
    assert faulty.prepare(good) == prepare_image(good, OPTIONS)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_pause_of_its_decoder_rejects_no_image(photo, faulty, monkeypatch):
    good, looks, real = encode(photo, "BMP"), [], child.read_state

    def look(pid):
        looks.append(real(pid)[0])
        if looks.count("T") == 2 * child.IDLE_TICKS:
            os.kill(pid, signal.SIGCONT)
        return real(pid)

    faulty.prepare(good)
    [pid] = find_children()
    monkeypatch.setattr(child, "read_state", look)
    assert faulty.prepare(good + b"PAUSE") == prepare_image(good + b"PAUSE", OPTIONS)
    assert find_children() == [pid]


def test_an_image_is_not_rejected_because_of_those_before_it(photo, faulty):
    good = encode(photo, "BMP")
    # Each leaves 40 MiB behind, which alone would be allowed.
    for _ in range(4):
        assert faulty.prepare(good + b"WASTE").width == 40
    # One that needs 50 MiB has that much alone.
    assert faulty.prepare(good + b"TIGHT").width == 40


def judge(preparer: ImagePreparer, data: bytes) -> object:
    """Returns what becomes of an image."""
    try:
        return preparer.prepare(data)
    except RejectError as error:
        return error.reason, error.detail


def make_odd_images() -> list[bytes]:
    """Returns images of many kinds.

    The first needs nearly all the memory that it may take, and the last leaves some behind.
    """
    large = np.zeros((1400, 1400, 3), int)
    noise = np.random.default_rng(1).integers(0, 1 << 16, (9, 33, 3))
    tight = make_tiff(large, 8, 2, dictionary_bytes=48 << 20)
    images = [tight, *(data for forms in FORMS.values() for data in forms.values())]
    for bits, order, deflated in itertools.product((1, 8, 12, 16), "<>", (False, True)):
        images.append(make_tiff(noise % (1 << bits), bits, 2, order=order, deflated=deflated))
    return [*images, make_tiff(np.zeros((1200, 1600, 3), int), 8, 2)]


@pytest.mark.parametrize("num_orders", [1, pytest.param(20, marks=pytest.mark.long)])
def test_a_verdict_depends_on_the_image_alone(preparer, monkeypatch, num_orders):
    images = make_odd_images()
    with monkeypatch.context() as patch:
        patch.setattr(
            child, "PROGRAM", child.PROGRAM.replace("importlib.im", ALONE + "importlib.im")
        )
        alone = {data: judge(preparer, data) for data in images}
    tight, large = images[0], images[-1]
    assert isinstance(alone[tight], PreparedImage)
    assert sum(isinstance(each, PreparedImage) for each in alone.values()) > 100
    for workers, seed in itertools.product((1, 3), range(num_orders)):
        order = [large, tight, *random.Random(seed).sample(images, len(images))]
        used = ImagePreparer(OPTIONS, max_processes=workers)
        with closing(used), ThreadPoolExecutor(workers) as pool:
            found = list(pool.map(functools.partial(judge, used), order))
        assert found == [alone[data] for data in order]


def test_a_killed_process_is_replaced(photo, preparer):
    data = encode(photo, "PNG")
    preparer.prepare(data)
    [pid] = find_children()
    os.kill(pid, signal.SIGKILL)
    assert preparer.prepare(data).width == 40
    assert find_children() != [pid]


def test_an_image_is_not_rejected_because_the_system_ends_its_decoder(photo, faulty):
    good = encode(photo, "BMP")
    for _ in range(2):
        with pytest.raises(DecoderProcessError, match="died of SIGKILL"):
            faulty.prepare(good + b"KILLS")
        assert faulty.prepare(good).width == 40


def test_threads_get_a_process_each_up_to_the_number_of_cores(photo, monkeypatch):
    monkeypatch.setattr(decoders, "count_images_at_once", lambda: 2)
    preparer = ImagePreparer(OPTIONS)
    images = [encode(photo.rotate(angle), "PNG") for angle in range(40)]
    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(preparer.prepare, images * 2))
    assert found == [prepare_image(data, OPTIONS) for data in images] * 2
    assert len(find_children()) == 2
    preparer.close()
    assert find_children() == []


def test_closing_interrupts_decoding(photo, faulty, monkeypatch):
    monkeypatch.setattr(child, "TICK_SECONDS", 1)
    faulty.prepare(encode(photo, "BMP"))
    with ThreadPoolExecutor(1) as pool:
        # It takes a minute, and has begun or not: both are interrupted.
        waiting = pool.submit(faulty.prepare, encode(photo, "BMP") + b"SLEEP")
        time.sleep(0.2)
        faulty.close()
        with pytest.raises(InterruptedError):
            waiting.result()
    with pytest.raises(InterruptedError):
        faulty.prepare(encode(photo, "BMP"))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_other_process_is_confined(photo, preparer, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    preparer.prepare(encode(photo, "PNG"))
    [pid] = find_children()
    limits = Path(f"/proc/{pid}/limits").read_text()
    found = {line[:26].strip(): line[26:47].strip() for line in limits.splitlines()}
    assert found["Max core file size"] == "0"
    assert found["Max file size"] == "0"
    assert found["Max open files"] == "32"
    assert int(found["Max cpu time"]) <= sandbox.CPU_SECONDS + 3
    assert 64 << 20 < int(found["Max address space"]) < 300 << 20
    assert "NoNewPrivs:\t1" in Path(f"/proc/{pid}/status").read_text()
    assert b"hidden" not in Path(f"/proc/{pid}/environ").read_bytes()
    modules = Path(f"/proc/{pid}/maps").read_text()
    assert "tensorflow" not in modules
    assert "apache_beam" not in modules


def test_the_other_process_ends_with_this_one(photo, tmp_path):
    path = tmp_path / "image.png"
    path.write_bytes(encode(photo, "PNG"))
    program = (
        "import os, sys, signal\n"
        "from darkroom.images.decoders import ImagePreparer\n"
        "from darkroom.images.prepare import ImageOptions\n"
        "preparer = ImagePreparer(ImageOptions())\n"
        f"preparer.prepare(open({str(path)!r}, 'rb').read())\n"
        "print(preparer._processes[-1]._process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    pid = int(run.stdout)
    for _ in range(100):
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the process outlived its parent")


def test_signals_for_the_whole_group_are_left_to_the_parent(photo, preparer):
    data = encode(photo, "PNG")
    preparer.prepare(data)
    [pid] = find_children()
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(pid, number)
    time.sleep(0.1)
    assert preparer.prepare(data).width == 40
    assert find_children() == [pid]


@pytest.mark.parametrize(
    ("executable", "words"),
    [("", "path is not known"), ("/bin/false", "exit code 1"), ("/no/python", "No such file")],
)
def test_an_error_says_that_there_is_no_interpreter(
    photo, preparer, monkeypatch, executable, words
):
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(DecoderProcessError) as error:
        preparer.prepare(encode(photo, "PNG"))
    assert words in error.value.message
    assert error.value.exit_code == 3
    assert not isinstance(error.value, OSError)  # which would be taken for an unreadable file
    assert "sys.executable" in error.value.hint


def test_another_darkroom_is_never_imported(photo, preparer, monkeypatch, tmp_path):
    (tmp_path / "darkroom").mkdir()
    (tmp_path / "darkroom" / "__init__.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(DecoderProcessError, match="instead of"):
        preparer.prepare(encode(photo, "PNG"))


def test_a_large_image_is_sent_again_with_the_memory_it_needs(monkeypatch):
    noise = np.random.default_rng(1).integers(0, 256, (300, 400, 3), np.uint8)
    data = encode(Image.fromarray(noise).resize((2000, 1500)), "PNG")
    granted = []
    real = DecoderProcess.prepare
    monkeypatch.setattr(
        DecoderProcess,
        "prepare",
        lambda self, data, num_bytes: granted.append(num_bytes) or real(self, data, num_bytes),
    )
    preparer = ImagePreparer(OPTIONS)
    assert preparer.prepare(data).width == 2000
    assert granted == [32 << 20, 2000 * 1500 * 12]
    preparer.close()


def test_a_process_says_how_much_memory_it_needs(photo):
    process = DecoderProcess(OPTIONS)
    with pytest.raises(MemoryNeededError) as error:
        process.prepare(encode(photo, "PNG"), 100)
    assert error.value.need == Need(40 * 24 * 12, 40 * 24 * 12)
    process.close()


@pytest.mark.parametrize("is_shared", [False, True])
def test_large_images_wait_for_each_other(is_shared):
    unit = 96 << 20  # what an image in one of several processes may take without the others
    budget = SharedBudget(3) if is_shared else MemoryBudget(3 * unit)
    others = SharedBudget(3, budget.pipes) if is_shared else budget
    held, most = [0], [0]
    lock = threading.Lock()

    def work(number: int) -> None:
        units = (1, 2, 3, 5, 1)[number % 5]
        with (budget, others)[number % 2].reserve(Need(units * unit, units * unit)):
            with lock:
                held[0] += min(units, 3)
                most[0] = max(most[0], held[0])
            time.sleep(0.002)
            with lock:
                held[0] -= min(units, 3)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    assert held == [0]
    assert most == [3]


def test_the_memory_of_a_killed_process_is_given_back():
    budget = SharedBudget(2)
    with SharedBudget(2, budget.pipes).reserve(Need(500 << 20, 500 << 20)):
        budget.release()
        with budget.reserve(Need(500 << 20, 500 << 20)):
            pass
    budget.close()


def test_a_failed_image_returns_its_memory():
    budget = MemoryBudget(100)
    with pytest.raises(ValueError, match="x"), budget.reserve(Need(100, 100)):
        raise ValueError("x")
    with budget.reserve(Need(100, 100)):
        pass


def test_a_jpeg_of_many_scans_is_stopped(preparer, monkeypatch):
    bombs = load_bombs()
    few, many = bombs.make_jpeg_of_scans(64, 80), bombs.make_jpeg_of_scans(64, 200)
    for data in (few, many):
        assert preparer.prepare(data).encoded == data  # harmless while it is small
    assert prepare_plain(few, OPTIONS) is not None
    assert prepare_plain(many, OPTIONS) is None
    preparer.close()
    monkeypatch.setattr(sandbox, "CPU_SECONDS", 0)  # the rest of a second
    # It works all the time, so it is not taken for one that hangs.
    monkeypatch.setattr(child, "TICK_SECONDS", 0.005)
    quick = ImagePreparer(OPTIONS)
    found = refuse(quick, bombs.make_jpeg_of_scans(3000, 20_000))
    assert found == ("decoder_timeout", "decoding it took more than 0 s of processor time")
    quick.close()


def load_bombs():
    spec = importlib.util.spec_from_file_location("bombs", BOMBS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_bombs_take_little_memory(tmp_path):
    for name, data in load_bombs().make_bombs():
        (tmp_path / name.replace("/", "")).write_bytes(data)
    run = subprocess.run([sys.executable, BOMBS, tmp_path], capture_output=True, check=True)
    found = json.loads(run.stdout)
    assert found["threads"] == 2
    assert 150 < found["peak_mib"] <= 400
    outcomes = found["outcomes"]
    reasons = {outcome.partition(":")[0] for outcome in outcomes.values() if ":" in outcome}
    assert reasons == {"too_large", "undecodable", "decoder_timeout"}
    assert outcomes["jpeg: 33 megapixels"] == "5790 x 5790"
    assert outcomes["png: interlaced"] == "2888 x 2888"
    for name in ("png: 64 megapixels", "webp: 64 megapixels", "jpeg: sequential, 8192 x 8192"):
        assert outcomes[name].startswith("too_large"), name


def test_there_are_no_more_processes_than_cores():
    assert 1 <= len(ImagePreparer(OPTIONS)._processes) <= os.cpu_count()
    assert decoders.BUDGET._total_bytes >= 192 << 20


@pytest.mark.parametrize(
    ("channels", "num_scans", "num_bytes"), [(1, 1, 100), (3, 1, 300), (1, 3, 300), (3, 3, 900)]
)
def test_a_jpeg_that_stays_needs_its_pixels_and_of_several_scans_its_coefficients(
    channels: int, num_scans: int, num_bytes: int
):
    assert count_plain_jpeg_bytes(100, channels, num_scans, stays=True) == num_bytes
