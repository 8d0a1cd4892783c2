"""How long the gallery of a million images takes to open and to filter, in headless Chromium.

Rows and pictures are generated; the page is made as `darkroom gallery` makes it. Needs Chromium,
and `pip install playwright`.

    python benchmarks/gallery.py [--rows 1000000] [--keep PAGE]
"""

from __future__ import annotations

import argparse
import base64
import io
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from darkroom.dataset.commit import Dataset
from darkroom.dataset.splits import SPLITS
from darkroom.validation.gallery.encode import find_room
from darkroom.validation.gallery.page import encode_findings, encode_page
from darkroom.validation.gallery.rows import GalleryRows, pack_map
from darkroom.validation.gallery.tiles import (
    LARGE_PIXELS,
    MAX_LARGE,
    MAX_TILES,
    SMALL_PIXELS,
    Tile,
    choose_tiles,
)
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.findings import Finding

CLASSES = 100
# Clicks that filter, by what they are on.
CLICKS = {
    "finding": ".findings button",
    "split": "#splits ~ ul button",
    "label": "#labels ~ ul button",
    "mistake": "#mistakes ~ ul button",
}
ROUNDS = 5


def make_page(count: int) -> str:
    """Returns the page of random numbers: three findings of a thousand rows, and predictions."""
    rng = np.random.default_rng(39)
    labels = tuple(f"class {number:03d}" for number in range(CLASSES))
    shares = rng.dirichlet(np.ones(CLASSES))
    split = rng.choice(len(SPLITS), count, p=[0.8, 0.1, 0.1])
    own = rng.choice(CLASSES, count, p=shares)
    group = own * len(SPLITS) + split
    side = rng.normal(400, 60, count).clip(32, 5_000)
    side[:: count // 50] = 20_000
    rows = GalleryRows(
        np.arange(1, count + 1),
        group.astype(np.uint16),
        side.astype(np.uint16),
        rng.normal(120, 40, count).clip(0, 254).astype(np.uint8),
        tuple((label,) for label in labels),
    )
    centers = rng.integers(500, 3_500, (CLASSES, 2))
    points = centers[own] + rng.normal(0, 150, (count, 2))
    arrays = {
        "group": rows.group,
        "side": rows.side,
        "brightness": rows.brightness,
        "map": pack_map(points.clip(0, 4_094).astype(np.uint16)),
        "told": np.where(rng.random(count) < 0.9, own, rng.integers(0, CLASSES, count)) + 1,
    }
    arrays["told"] = arrays["told"].astype(np.min_scalar_type(CLASSES))
    findings = []
    for check in ("near_leakage", "near_conflicts", "quality"):
        chosen = rng.choice(count, 2_000, replace=False) + 1
        pairs = chosen.reshape(-1, 2).tolist()
        is_pair = check != "quality"
        listed = [{"row": a, "other_row": b} if is_pair else {"row": a} for a, b in pairs]
        findings.append(Finding(check, "warn", 4_000, "generated", "", tuple(listed)))
    report = DatasetReport(
        rows=count,
        written=count,
        deduplicated=0,
        rejected={},
        labels=labels,
        splits={name: int((split == number).sum()) for number, name in enumerate(SPLITS)},
        classes={},
        policies={},
        findings=tuple(findings),
    )
    encoded = encode_findings(findings, rows)
    named = [[place for item in each["items"] for place in item["places"]] for each in encoded]
    room, tiles = find_room(arrays), []
    for number, place in enumerate(choose_tiles(rows, named)[:MAX_TILES]):
        picture = draw_picture(rng, LARGE_PIXELS if number < MAX_LARGE else SMALL_PIXELS)
        room -= len(picture)
        uri = f"s3://bucket/photographs/class/{place:032x}.jpg"
        shown = picture if room > 0 else ""
        tiles.append(Tile(place, place + 1, uri, labels[own[place]], (640, 480), shown, 0.9876))
    dataset = Dataset(1, "0" * 64, {}, "full", {}, labels, count, count, 0, 0, {})
    return encode_page(report, dataset, rows, arrays, encoded, tiles, place={})


def draw_picture(rng: np.random.Generator, pixels: int) -> str:
    """Returns a JPEG with as many bytes as a photograph of clothing of this size."""
    coarse = Image.fromarray(rng.integers(0, 256, (pixels // 9, pixels // 9, 3), np.uint8))
    image = coarse.resize((pixels, pixels), Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=82)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()


MEASURE = """async (selector) => {
  const buttons = [...document.querySelectorAll(selector)].slice(0, 5), times = [];
  for (const button of [...buttons, ...buttons]) {
    const start = performance.now();
    button.click();
    const handled = performance.now() - start;
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    times.push([handled, performance.now() - start]);
  }
  return times;
}"""


def measure(path: Path, chromium: str) -> None:
    """Opens the page several times, and prints the medians in milliseconds."""
    from playwright.sync_api import sync_playwright

    paints, readies = [], []
    with sync_playwright() as play:
        flags = ["--no-sandbox", "--enable-unsafe-swiftshader"]
        browser = play.chromium.launch(executable_path=chromium, args=flags)
        for _ in range(ROUNDS):
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            page.goto(path.as_uri(), wait_until="load")
            page.wait_for_function("performance.getEntriesByName('ready').length > 0")
            name = "performance.getEntriesByName('{}')[0].startTime"
            paints.append(page.evaluate(name.format("first-contentful-paint")))
            readies.append(page.evaluate(name.format("ready")))
            if len(paints) < ROUNDS:
                page.close()
        print(f"first paint   {statistics.median(paints):7.0f} ms  (all of {ROUNDS}: {paints})")
        print(f"ready         {statistics.median(readies):7.0f} ms")
        for what, selector in CLICKS.items():
            times = page.evaluate(MEASURE, selector)
            handled, painted = (statistics.median(each) for each in zip(*times, strict=True))
            print(f"filter {what:<8}{handled:6.0f} ms, painted after {painted:.0f} ms")
        browser.close()


def main() -> int:
    """Makes the page, and measures it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keep", help="Where the page stays")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(arguments.keep or Path(folder, "gallery.html")).absolute()
        path.write_text(make_page(arguments.rows))
        print(f"{arguments.rows:,} rows: {path.stat().st_size / 1e6:.1f} MB")
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        try:
            import playwright  # noqa: F401
        except ImportError:
            chromium = None
        if chromium is None:
            print("Not measured: needs Chromium, and pip install playwright.")
            return 0
        measure(path, chromium)
    return 0


if __name__ == "__main__":
    sys.exit(main())
