"""Makes pixels of an image file as a SavedModel of darkroom does, with Pillow and NumPy alone.

For programs that run a model as TFLite or ONNX: the guide to exporting says what the steps are.
"""

import numpy as np
from PIL import Image, ImageOps


def read_pixels(path, height, width, resize="stretch"):
    """Returns uint8 [1, height, width, 3]: an image file as the model needs it."""
    with Image.open(path) as image:
        is_jpeg = image.format in ("JPEG", "MPO")
        turned = image.getexif().get(0x0112, 1) >= 5
        columns, rows = image.size[::-1] if turned else image.size
        top, left, high, wide = choose_window(rows, columns, height, width, resize)
        scale = max(n for n in (1, 2, 4, 8) if n == 1 or n <= min(high // height, wide // width))
        # This does nothing if the image is not a JPEG.
        image.draft("RGB", (image.width // scale, image.height // scale))
        upright = ImageOps.exif_transpose(image)
        if upright.has_transparency_data:
            white = Image.new("RGBA", upright.size, "white")
            upright = Image.alpha_composite(white, upright.convert("RGBA"))
        pixels = np.asarray(upright.convert("RGB"))
    if is_jpeg:
        top, left, high, wide = top // scale, left // scale, high // scale, wide // scale
    if resize == "center_crop":
        pixels = pixels[top : top + high, left : left + wide]
    return resize_bilinear(pixels, height, width)[np.newaxis]


def choose_window(rows, columns, height, width, resize):
    """Returns top, left, height and width of what is shown of the upright image."""
    if resize == "stretch":
        return 0, 0, rows, columns
    side, whole = (rows, height) if rows * width <= columns * height else (columns, width)
    # Seven eighths, to the nearest whole number.
    high, wide = (max(1, (14 * n * side + 8 * whole) // (16 * whole)) for n in (height, width))
    return (rows - high) // 2, (columns - wide) // 2, high, wide


def resize_bilinear(pixels, height, width):
    """Resizes without antialiasing, as tf.image.resize does."""
    if pixels.shape[:2] == (height, width):
        return pixels
    pixels = pixels.astype(np.float32)
    for axis, size in enumerate((height, width)):
        length = pixels.shape[axis]
        place = (np.arange(size, dtype=np.float32) + 0.5) * np.float32(length / size) - 0.5
        place = place.clip(0, length - 1)
        low = np.floor(place).astype(int)
        share = (place - low).reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
        first = pixels.take(low, axis)
        second = pixels.take(np.minimum(low + 1, length - 1), axis)
        pixels = first + (second - first) * share
    return (pixels + 0.5).astype(np.uint8)
