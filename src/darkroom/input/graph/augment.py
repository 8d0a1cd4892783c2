"""Random changes of training images: mirrored, tinted, rotated, covered, mixed.

Every image has its own random numbers. They are a hash of its seeds and of their purpose, so they
do not depend on the other images, on their number, or on other augmentations. `darkroom.reader`
makes the same changes in NumPy. Mirroring takes one
image and the rest takes batches, which is the faster way for each (`benchmarks/augmentation.py`).
"""

from __future__ import annotations

import math

import tensorflow as tf

from darkroom.errors import UsageError
from darkroom.input.graph.orientation import to_float
from darkroom.options.augmentation import Augmentation
from darkroom.reader import draws
from darkroom.reader.augment import GRAY, LUMINANCE, MEAN_SIDE
from darkroom.targets.geometry import IDENTITY, Matrix, rotate, turn

# Coefficients of colors are multiples of 1 / 4096. Products and sums with bytes then fit into the
# 24 bits of a float32, so the order in which a kernel adds them never changes a pixel.
_COLOR_STEPS = 4096


def flip_image(image: tf.Tensor, seed: tf.Tensor, share: float = 0.5) -> tf.Tensor:
    """Mirrors an image left to right, or not.

    Args:
        image: uint8 [H, W, 3].
        seed: int64 [2].
        share: How likely it is mirrored, 0 to 1.

    Returns:
        uint8 [H, W, 3].
    """
    is_mirrored = _draw(seed, draws.FLIP) < share
    return tf.cond(is_mirrored, lambda: tf.reverse(image, (1,)), lambda: image)


def augment_batch(
    images: tf.Tensor,
    labels: tf.Tensor,
    seeds: tf.Tensor,
    augmentation: Augmentation,
    num_classes: int | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Changes colors, rotates, covers and mixes images, in this order.

    `augmentation.crop` and `flip` change no pixels here: `darkroom.input.graph.decode` and
    `flip_image` did that before, on single images.

    Args:
        images: uint8 [B, H, W, 3], RGB; H and W are known when the graph is made.
        labels: int64 [B].
        seeds: int64 [B, 2]. An image depends only on its own row; but mixup adds the image before
            it in the batch, or the last image to the first one.
        augmentation: The steps. Those of strength 0 are left out.
        num_classes: C, the number of labels; needed for mixup.

    Returns:
        The changed images, uint8 [B, H, W, 3]; labels as they came, or with mixup their mixed
        one-hot vectors, float32 [B, C], each with the sum 1.

    Raises:
        UsageError: `augmentation` has mixup, but there is no number of classes.
    """
    if augmentation.color:
        images = _change_colors(images, seeds, augmentation.color)
    if augmentation.rotate:
        images = _rotate(images, _spread(seeds, draws.ANGLE, augmentation.rotate))
    if augmentation.cutout:
        images = _cut_out(images, seeds, augmentation.cutout)
    if augmentation.mixup:
        if labels.dtype.is_integer:
            num_classes = check_num_classes(num_classes)
        shares = _draw_beta(seeds, augmentation.mixup)
        own = shares[:, None, None, None]
        others = tf.cast(tf.roll(images, 1, 0), tf.float32) * (1 - own)
        images = tf.cast(tf.cast(images, tf.float32) * own + (others + 0.5), tf.uint8)
        vectors = tf.one_hot(labels, num_classes) if labels.dtype.is_integer else labels
        # One share an image, whatever number of values it has.
        own_values = tf.reshape(shares, [-1, *[1] * (len(vectors.shape) - 1)])
        labels = vectors * own_values + tf.roll(vectors, 1, 0) * (1 - own_values)
    return images, labels


def locate_changes(
    seeds: tf.Tensor, augmentation: Augmentation, image_size: tuple[int, int]
) -> Matrix:
    """Returns where a point of each image of a batch goes, [B] each: a mirror and a rotation.

    Args:
        seeds: int64 [B, 2].
        augmentation: The steps.
        image_size: (height, width) of the images.
    """
    matrix = IDENTITY
    if augmentation.flip:
        is_mirrored = _draw(seeds, draws.FLIP) < augmentation.flip_share
        matrix = turn(*image_size, mirrored=to_float(is_mirrored))
    if augmentation.rotate:
        degrees = _spread(seeds, draws.ANGLE, augmentation.rotate)
        matrix = matrix.then(rotate(*_find_direction(degrees), *image_size))
    return matrix


def _change_colors(images: tf.Tensor, seeds: tf.Tensor, strength: float) -> tf.Tensor:
    """Multiplies brightness, contrast and saturation by random factors, in this order.

    Contrast is the distance from the mean luminance of the image, saturation the distance from that
    of the pixel. Together they are one linear map of (red, green, blue), so a batch is read only
    once. Pixels are limited to 0 to 255 once, at the end.
    """
    brightness = 1 + _spread(seeds, draws.BRIGHTNESS, strength)
    contrast = 1 + _spread(seeds, draws.CONTRAST, strength)
    saturation = 1 + _spread(seeds, draws.SATURATION, strength)
    offset = brightness * (1 - contrast) * _measure_luminance(images) + 0.5  # A cast rounds down.
    own = (brightness * contrast * saturation)[:, None, None]
    gray = (brightness * contrast * (1 - saturation))[:, None, None]
    luminance = tf.constant(LUMINANCE, tf.float64)[:, None]
    matrix = own * tf.eye(3, dtype=tf.float64) + gray * luminance
    pixels = tf.cast(tf.reshape(images, (tf.shape(images)[0], -1, 3)), tf.float32)
    changed = tf.matmul(pixels, _to_steps(matrix)) + _to_steps(offset)[:, None, None]
    return _reshape_like(tf.saturate_cast(changed, tf.uint8), images)


def _measure_luminance(images: tf.Tensor) -> tf.Tensor:
    """Returns the mean luminance of each image over a grid of its pixels, float64 [B]."""
    step = max(1, min(images.shape[1:3]) // MEAN_SIDE)
    grid = tf.cast(images[:, ::step, ::step], tf.int32)
    means = tf.reduce_sum(grid, (1, 2)) / (grid.shape[1] * grid.shape[2])
    return tf.reduce_sum(means * tf.constant(LUMINANCE, tf.float64), 1)


def _to_steps(values: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.round(values * _COLOR_STEPS) / _COLOR_STEPS, tf.float32)


def _find_direction(degrees: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the cosine and the sine of angles."""
    return tf.cos(degrees * math.pi / 180), tf.sin(degrees * math.pi / 180)


def _rotate(images: tf.Tensor, degrees: tf.Tensor) -> tf.Tensor:
    """Rotates images counterclockwise about their centers by float64 [B]. Edges are reflected."""
    _, height, width, _ = images.shape
    cosine, sine = _find_direction(degrees)
    # The kernel asks where a pixel comes from, and counts from the centers of pixels.
    back = rotate(cosine, -sine, height - 1, width - 1)
    rows = tf.stack((*back, *(2 * [tf.zeros_like(cosine)])), axis=1)
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=tf.cast(rows, tf.float32),
        output_shape=(height, width),
        interpolation="BILINEAR",
        fill_mode="REFLECT",
        fill_value=0.0,
    )


def _cut_out(images: tf.Tensor, seeds: tf.Tensor, share: float) -> tf.Tensor:
    """Covers each image with a gray square, whose center is anywhere in the image."""
    _, height, width, _ = images.shape
    side = round(share * min(height, width))
    in_row = _cover(seeds, draws.ROW, height, side)
    in_column = tf.repeat(_cover(seeds, draws.COLUMN, width, side), 3, axis=1)
    # Only the rows of pixels below a square are read and written.
    places = tf.where(in_row)
    lines = tf.reshape(images, (-1, height, width * 3))
    gray = tf.constant(GRAY, tf.uint8)
    covered = tf.where(tf.gather(in_column, places[:, 0]), gray, tf.gather_nd(lines, places))
    return _reshape_like(tf.tensor_scatter_nd_update(lines, places, covered), images)


def _cover(seeds: tf.Tensor, purpose: int, length: int, side: int) -> tf.Tensor:
    """Returns which of `length` pixels a stretch of `side` covers, bool [B, length]."""
    center = tf.cast(tf.floor(_draw(seeds, purpose) * length), tf.int32)
    distance = tf.range(length) - (center - side // 2)[:, None]
    return (distance >= 0) & (distance < side)


def check_num_classes(num_classes: int | None) -> int:
    """Returns the number of labels, which mixup needs.

    Raises:
        UsageError: It is None.
    """
    if num_classes is None:
        raise UsageError(
            "mixup needs num_classes, the number of labels.", "Set num_classes in InputOptions."
        )
    return num_classes


def _draw_beta(seeds: tf.Tensor, alpha: float) -> tf.Tensor:
    """Draws from Beta(alpha, alpha), float32 [B].

    With uniform u and v, t**2 = n * (u**(-2 / n) - 1) * cos(2 pi v)**2 is the square of Student's t
    with n degrees of freedom (Bailey, "Polar generation of random variates with the
    t-distribution", 1994), and (1 + t / sqrt(n + t**2)) / 2 has the distribution Beta(n/2, n/2).
    """
    cosine = tf.cos(2 * math.pi * _draw(seeds, draws.TURN))
    # 1 - u is never 0. If a power overflows or becomes 0, the result is still 0 or 1.
    ratio = ((1 - _draw(seeds, draws.SHARE)) ** (-1 / alpha) - 1) * cosine**2
    return tf.cast((1 + tf.sign(cosine) / tf.sqrt(1 + 1 / ratio)) / 2, tf.float32)


def _spread(seeds: tf.Tensor, purpose: int, width: float) -> tf.Tensor:
    """Returns uniform random numbers from -width to width, float64."""
    return (2 * _draw(seeds, purpose) - 1) * width


def _draw(seeds: tf.Tensor, purpose: int) -> tf.Tensor:
    """Hashes seeds into uniform random numbers in [0, 1), as `draws.draw` does.

    They are float64, like all values that are computed from them for a whole image. Kernels round
    the last bit of a cosine differently at different places of a batch; with float32, that would
    change pixels.

    Args:
        seeds: int64 [..., 2].
        purpose: The use of the numbers. Each purpose gets independent numbers.

    Returns:
        float64 [...].
    """
    first, second = tf.unstack(tf.bitcast(seeds, tf.uint64), axis=-1)
    state = first * _bits(draws.START)
    state = (state ^ _shift(state, 32)) + second * _bits(draws.STRIDE)
    state += _bits(purpose * draws.PURPOSE % (1 << 64))
    state = (state ^ _shift(state, 30)) * _bits(draws.FIRST)
    state = (state ^ _shift(state, 27)) * _bits(draws.SECOND)
    return tf.cast(_shift(state ^ _shift(state, 31), 11), tf.float64) / (1 << 53)


def _shift(state: tf.Tensor, count: int) -> tf.Tensor:
    return tf.bitwise.right_shift(state, _bits(count))


def _bits(value: int) -> tf.Tensor:
    return tf.constant(value, tf.uint64)


def _reshape_like(values: tf.Tensor, images: tf.Tensor) -> tf.Tensor:
    return tf.ensure_shape(tf.reshape(values, tf.shape(images)), images.shape)
