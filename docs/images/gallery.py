"""Makes gallery.png, the picture of docs/guides/gallery.md: pairs with different labels.

    python docs/images/gallery.py

Needs Chromium, and `pip install playwright`. The images are cut from those of scikit-learn.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_sample_images

import darkroom
from darkroom.validation.browse import write_gallery

_SIZE = (1180, 760)
_SIDE = 200


def write_images(folder: Path) -> None:
    """Writes crops of a temple and a flower; four of them again, changed, with the wrong label."""
    rng = np.random.default_rng(7)
    lines = ["split,image,label"]
    for label, photo in zip(("temple", "flower"), load_sample_images().images, strict=True):
        other = "flower" if label == "temple" else "temple"
        for number in range(24):
            top, left = rng.integers(0, [photo.shape[0] - _SIDE, photo.shape[1] - _SIDE])
            crop = Image.fromarray(photo[top : top + _SIDE, left : left + _SIDE])
            name = f"{label}-{number:02d}.jpg"
            crop.save(folder / name, quality=92)
            lines.append(f"{'eval' if number % 4 == 0 else 'train'},{name},{label}")
            if number < 2:
                crop.point(lambda value: min(255, round(value * 1.2))).save(
                    folder / f"again-{name}", quality=40
                )
                lines.append(f"train,again-{name},{other}")
    (folder / "images.csv").write_text("\n".join(lines))


def main() -> None:
    """Makes the picture."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as play:
        folder = Path(name)
        write_images(folder)
        darkroom.convert(folder / "images.csv", folder / "records")
        write_gallery(folder / "records", folder / "gallery.html")
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": _SIZE[0], "height": _SIZE[1]})
        page.goto((folder / "gallery.html").as_uri())
        page.get_by_role("button", name="Images that look alike with different labels").click()
        page.locator("[data-action=left]").first.click()
        page.wait_for_timeout(7_000)  # the message about the decision goes
        page.screenshot(path=folder / "page.png")
        browser.close()
        picture = Image.open(folder / "page.png").convert("RGB")
        target = Path(__file__).with_suffix(".png")
        picture.quantize(200, dither=Image.Dither.NONE).save(target, optimize=True)


if __name__ == "__main__":
    main()
