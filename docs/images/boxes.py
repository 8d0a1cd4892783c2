"""Makes boxes.png, the gallery of drawings with boxes, of a file of COCO.

    python docs/images/boxes.py

Needs darkroom, Chromium, and `pip install playwright pillow`.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import sync_playwright

from darkroom.cli import main as run

CLASSES = ("disc", "square", "triangle")
SIZE = (160, 120)


def draw(chance: random.Random) -> tuple[Image.Image, list[tuple[str, list[int]]]]:
    """Returns a drawing and its objects: class and [x, y, width, height] of each."""
    shade = chance.randrange(200, 240)
    picture = Image.new("RGB", SIZE, (shade, shade - 10, shade - 25))
    pen, objects = ImageDraw.Draw(picture), []
    for _ in range(chance.randrange(5)):
        side = chance.randrange(18, 60)
        x, y = chance.randrange(SIZE[0] - side), chance.randrange(SIZE[1] - side)
        name = chance.choice(CLASSES)
        color = tuple(chance.randrange(30, 190) for _ in range(3))
        if name == "disc":
            pen.ellipse((x, y, x + side, y + side), color)
        elif name == "square":
            pen.rectangle((x, y, x + side, y + side), color)
        else:
            pen.polygon([(x, y + side), (x + side, y + side), (x + side // 2, y)], color)
        objects.append((name, [x, y, side, side]))
    return picture, objects


def write_set(folder: Path) -> Path:
    """Writes drawings and their file of COCO, with a twin and an object outside its image."""
    chance, images, annotations = random.Random(7), [], []
    (folder / "images").mkdir()
    for number in range(60):
        picture, objects = draw(chance)
        picture.save(folder / "images" / f"{number:02d}.png")
        sides = {"width": SIZE[0], "height": SIZE[1]}
        images.append({"id": number, "file_name": f"{number:02d}.png", **sides})
        if number == 5 and objects:
            name, (x, y, width, height) = objects[0]
            objects += [(name, [x + 1, y, width, height]), (name, [900, y, width, height])]
        annotations += [
            {"image_id": number, "category_id": CLASSES.index(name), "bbox": box}
            for name, box in objects
        ]
    numbered = [{"id": number, **each} for number, each in enumerate(annotations)]
    categories = [{"id": number, "name": name} for number, name in enumerate(CLASSES)]
    path = folder / "annotations.json"
    found = {"images": images, "annotations": numbered, "categories": categories}
    path.write_text(json.dumps(found))
    return path


def main() -> None:
    """Makes the picture."""
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as play:
        path = write_set(Path(scratch))
        records, gallery = f"{scratch}/records", f"{scratch}/gallery.html"
        run(["convert", str(path), "--output-dir", records])
        run(["gallery", records, "--output", gallery])
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1180, "height": 800})
        page.goto(Path(gallery).as_uri())
        page.wait_for_timeout(2_000)
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        target = Path(__file__).with_name("boxes.png")
        picture.quantize(200, dither=Image.Dither.NONE).save(target, optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
