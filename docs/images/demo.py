"""Makes the pictures of the demo's pages: report.png, model.png, gallery.png, gallery-labels.png.

    python docs/images/demo.py REPORT MODEL GALLERY

These are the pages that `darkroom demo` names at its end. Needs Chromium, and `pip install
playwright pillow`.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright


def open_page(browser: Browser, path: str, width: int, height: int) -> Page:
    """Opens a page in a window of that size."""
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(Path(path).resolve().as_uri())
    return page


def take(page: Page, name: str) -> None:
    """Writes what the window shows as a picture of few colors."""
    page.wait_for_timeout(7_000)  # messages about decisions go
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    target = Path(__file__).with_name(name)
    picture.quantize(200, dither=Image.Dither.NONE).save(target, optimize=True)


def show_finding(page: Page, title: str) -> None:
    """Shows the images of one finding."""
    page.locator(".findings").get_by_role("button", name=title).click()


def take_finding(page: Page, name: str) -> None:
    """Writes the finding, from its head on."""
    page.locator("section.finding").evaluate("node => node.scrollIntoView()")
    take(page, name)


def main(report: str, model: str, gallery: str) -> None:
    """Makes the pictures."""
    with sync_playwright() as play:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        take(open_page(browser, report, 1000, 1300), "report.png")
        take(open_page(browser, model, 1080, 1500), "model.png")
        page = open_page(browser, gallery, 1180, 800)
        show_finding(page, "Images that look alike in different splits")
        for number in (0, 1):
            page.locator("[data-action=left]").nth(number).click()
        take_finding(page, "gallery.png")
        show_finding(page, "Labels that are probably wrong")
        for number in (0, 1, 2):
            page.locator("button.tile").nth(number).focus()
            page.keyboard.press("t")
        take_finding(page, "gallery-labels.png")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
