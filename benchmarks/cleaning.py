"""How many actions in the gallery clean photographs with 60 planted faults, in headless Chromium.

    python benchmarks/cleaning.py --photographs DIR [--seed 0] [--most 300]

Six faults of each of ten kinds are planted among photographs in folders of labels. The gallery of
`darkroom validate --gallery` is worked through once, by the keys that its guide names, and the next
run gets the decisions. What a person sees on the pictures is known here from what was planted: so
a suggestion is taken where it is right, and what was not planted is left as it is. First come
the findings, then all images of each label, as the guide asks for. Each key, also each letter of a
label, and each click is an action, but not scrolling. The exit code is 1 if there are more than
`--most`. Needs Chromium, and `pip install playwright`.
"""

from __future__ import annotations

import argparse
import io
import itertools
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from finders.planted import COPIES, DAMAGE, Fault, Planted, plant
from PIL import Image, ImageDraw

import darkroom
from darkroom.dataset.index import read_index
from darkroom.options import ConversionOptions

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

EACH = 6


def draw_chart(image: Image.Image) -> bytes:
    """Returns a chart of how bright the pixels are, in the size of the photograph."""
    chart, buffer = Image.new("RGB", image.size, "white"), io.BytesIO()
    draw, levels = ImageDraw.Draw(chart), image.convert("L").histogram()
    bars = [sum(levels[start : start + 16]) for start in range(0, 256, 16)]
    wide, high = image.width / len(bars), image.height / max(bars)
    for number, bar in enumerate(bars):
        sides = number * wide, image.height - bar * high, (number + 0.8) * wide, image.height
        draw.rectangle(sides, fill="steelblue")
    chart.save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def list_faults() -> list[Fault]:
    """Returns six faults of each kind; near copies are of all kinds that are planted elsewhere."""
    edits = itertools.cycle(COPIES.values())
    faults = []
    for _ in range(EACH):
        faults += [
            Fault("near copy in one split", next(edits)),
            Fault("near copy in two splits", next(edits), other_split=True),
            Fault("near copy with another label", next(edits), other_label=True),
            Fault("equal copy in two splits", None, other_split=True),
            Fault("equal copy with another label", None, other_label=True),
            Fault("wrong label", None, is_copy=False, other_label=True),
            *(Fault(kind, edit, is_copy=False) for kind, edit in DAMAGE.items()),
            Fault("a chart", draw_chart, is_copy=False),
        ]
    return faults


class Card(NamedTuple):
    """What the page shows of a pair or an image: names and labels of its images, and its facts."""

    node: Locator
    names: list[str]
    labels: list[str]
    facts: list[str]
    is_decided: bool


def read_cards(page: Page, selector: str) -> list[Card]:
    """Returns the pairs or images that are shown, in their order."""
    cards = []
    for node in page.locator(selector).all():
        names = [each.get_attribute("title") for each in node.locator(".file").all()]
        cards.append(
            Card(
                node,
                [Path(name).name for name in names],
                node.locator(".label").all_text_contents(),
                node.locator(".fact").all_text_contents(),
                any(node.locator(".fate").all_text_contents()),
            )
        )
    return cards


class Person:
    """Works through the findings, and counts what that takes."""

    def __init__(self, page: Page, planted: Planted) -> None:
        self.page, self.planted = page, planted
        self.actions: Counter[str] = Counter()
        self.finding = "next finding, effect, saving"
        self.unlisted: list[str] = []  # The kinds of faults that no finding showed.

    def press(self, *keys: str) -> None:
        """Presses keys, one after the other."""
        for key in keys:
            self.actions[self.finding] += 1
            self.page.keyboard.press(key)

    def click(self, node: Locator) -> None:
        """Clicks on something."""
        self.actions[self.finding] += 1
        node.click()

    def clean(self, path: Path) -> None:
        """Decides about each finding, and saves the file of decisions."""
        others, count = self.finding, f"{len(self.planted.labels):,}"
        everything = f"{count} of {count} "
        for title in self.page.locator(".findings .name").all_inner_texts():
            self.finding = others
            self.press("n")
            self.finding = title
            if self.page.locator(".shown").inner_text().startswith(everything):
                continue  # A finding about the dataset lists no images.
            self.settle_pairs(read_cards(self.page, ".pair"))
            self.settle_images(read_cards(self.page, ".tile"))
        self.look_at_classes()
        self.finding = others
        self.press("v", "Escape")
        with self.page.expect_download() as download:
            self.press("S")
        download.value.save_as(path)

    def look_at_classes(self) -> None:
        """Shows all images of each label, and decides about those that no finding listed."""
        self.finding = "all images of each label"
        self.press("0")
        labels = self.page.locator("#labels ~ ul button")
        for number in range(labels.count()):
            self.click(labels.nth(number))
            while self.page.locator("#images .more").is_visible():
                self.page.locator("#images .more").scroll_into_view_if_needed()
                self.page.wait_for_timeout(100)
            images = read_cards(self.page, ".tile")
            missed = [each.names[0] for each in images if any(self.judge_image(each))]
            self.unlisted += [self.planted.damaged.get(name, "wrong label") for name in missed]
            self.settle_images(images)
            self.press("0")

    def judge_pair(self, pair: Card) -> str:
        """Returns the key for a pair, or none where nothing is planted, or it is decided.

        It is "H" where the left image may stay: the one that is held out, or either.
        """
        original, copy = sorted(pair.names, key=len)
        if pair.is_decided or self.planted.copies.get(copy, [None])[0] != original:
            return ""
        is_wrong = [name in self.planted.wrong for name in pair.names]
        return str(is_wrong.index(False) + 1) if any(is_wrong) else "H"

    def settle_pairs(self, pairs: list[Card]) -> None:
        """Decides about all pairs by one key where that is right, else about each."""
        keys = [self.judge_pair(pair) for pair in pairs]
        while keys and not keys[-1]:
            keys.pop()
        if {*keys} == {"H"} and len(keys) == len(pairs):
            self.press("H")
        elif keys:
            # The first pair gets the focus, and after a decision the next one.
            self.press("ArrowRight", *(key.replace("H", "1") or "ArrowRight" for key in keys))

    def judge_image(self, image: Card) -> tuple[str, str]:
        """Returns the key for an image and the label that it should have, or nothing."""
        [name], right = image.names, self.planted.wrong.get(image.names[0], "")
        if image.is_decided or (name not in self.planted.damaged and not right):
            return "", ""
        if not right:
            return "d", ""
        return ("t", "") if f"suggested {right}" in image.facts else ("r", right)

    def settle_images(self, images: list[Card]) -> None:
        """Selects the images that need the same, and does it for all of them."""
        verdicts = [self.judge_image(image) for image in images]
        for verdict in sorted({*verdicts} - {("", "")}):
            chosen = [each == verdict for each in verdicts]
            is_most = sum(chosen) > len(images) / 2
            if is_most:
                self.press("a")
            for image, is_chosen in zip(images, chosen, strict=True):
                if is_chosen != is_most:
                    self.click(image.node)
            key, label = verdict
            self.press(key, *label, *(["Enter"] if label else []))


def work_through(gallery: Path, planted: Planted, decisions: Path) -> Person:
    """Cleans by the page, and returns who did, with the actions that it took."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as play:
        flags = ["--no-sandbox", "--enable-unsafe-swiftshader"]
        browser = play.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.goto(gallery.as_uri())
        page.wait_for_function("performance.getEntriesByName('ready').length")
        person = Person(page, planted)
        person.clean(decisions)
        browser.close()
    return person


def read_images(records: Path) -> dict[str, tuple[str, str]]:
    """Returns the label and the split of each image of a dataset."""
    rows = read_index(str(records / "index"), ["uri", "label", "split"]).to_pylist()
    return {Path(row["uri"]).name: (row["label"], row["split"]) for row in rows}


def judge(planted: Planted, left: dict[str, tuple[str, str]]) -> tuple[dict[str, str], list[str]]:
    """Returns the kinds of the faults that are left, by image, and good images that are lost."""

    def is_good(name: str) -> bool:
        right = planted.wrong.get(name, planted.labels[name]), planted.splits[name].lower()
        return left.get(name) == right

    kinds = {copy: kind for copy, (_, kind) in planted.copies.items()} | planted.damaged
    kinds = dict.fromkeys(planted.wrong, "wrong label") | kinds
    missed = {name: kind for name, kind in kinds.items() if name in left}
    lost = []
    for name in planted.labels:
        copy = name.replace(".jpg", "-copy.jpg")
        if copy in planted.copies:
            # One of the two stays, whichever it is, and is as it should be.
            if [name in left, copy in left].count(True) == 1:
                missed.pop(copy, None)
            if not is_good(name) and not is_good(copy):
                lost.append(name)
        elif name not in kinds or kinds[name] == "wrong label":
            if is_good(name):
                missed.pop(name, None)
            elif name not in missed:
                lost.append(name)
    return missed, lost


def main() -> int:
    """Prints what is cleaned, and how many actions that takes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photographs", type=Path, required=True, help="folders of labels")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=300)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        source, records, report, decisions, cleaned = (
            Path(scratch, name) for name in ("source", "records", "report", "decided", "cleaned")
        )
        source.mkdir()
        faults = list_faults()
        planted = plant(arguments.photographs, source, arguments.seed, faults=faults, num_wrong=0)
        darkroom.convert(planted.listed, records)
        darkroom.embed(records)
        darkroom.validate(records, report_dir=report, gallery=True)
        person = work_through(report / "gallery.html", planted, decisions)
        darkroom.convert(planted.listed, cleaned, options=ConversionOptions(decisions=decisions))
        missed, lost = judge(planted, read_images(cleaned))
    print(f"{len(planted.labels):,} images\n\n{'':32}planted  cleaned")
    left, actions = Counter(missed.values()), person.actions
    for kind, number in Counter(fault.kind for fault in faults).items():
        print(f"{kind:32}{number:7}{number - left[kind]:9}")
    print(f"{'all':32}{len(faults):7}{len(faults) - len(missed):9}\n\n{'':52}actions")
    for finding, number in actions.items():
        print(f"{finding:52}{number:7}")
    print(f"{'all':52}{actions.total():7}\n")
    print("in no finding, seen with its label:", ", ".join(person.unlisted) or "none")
    print("left:", ", ".join(f"{name} ({kind})" for name, kind in missed.items()) or "none")
    print("good images lost:", ", ".join(lost) or "none")
    return int(actions.total() > arguments.most)


if __name__ == "__main__":
    sys.exit(main())
