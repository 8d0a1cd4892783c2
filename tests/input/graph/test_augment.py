"""What augmentation does to pixels and labels, against plain NumPy and Pillow."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from darkroom.errors import UsageError
from darkroom.input.graph import augment as augmentations
from darkroom.input.graph.augment import augment_batch, flip_image
from darkroom.options.augmentation import Augmentation, parse_augmentation

pytestmark = pytest.mark.tensorflow

ALL = "color=1,rotate=180,cutout=0.5"
LUMINANCE = np.array([0.299, 0.587, 0.114])


def make_images(count: int, height: int = 48, width: int = 40, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, height, width, 3), dtype=np.uint8)


def make_seeds(count: int, first: int = 7) -> np.ndarray:
    """Like those of an epoch: one number for all, and consecutive ones."""
    return np.stack([np.full(count, first), np.arange(count)], axis=1).astype(np.int64)


def augment(images: np.ndarray, seeds: np.ndarray, text: str) -> np.ndarray:
    labels = np.arange(len(images), dtype=np.int64)
    changed, same = augment_batch(
        tf.constant(images), tf.constant(labels), tf.constant(seeds), parse_augmentation(text)
    )
    assert changed.dtype == tf.uint8
    assert changed.shape == images.shape
    np.testing.assert_array_equal(same, labels)
    assert same.dtype == tf.int64
    return changed.numpy()


# Random numbers


def _numbers(purpose: int, seeds: np.ndarray) -> np.ndarray:
    return augmentations._draw(tf.constant(seeds), purpose).numpy()


def test_random_numbers_are_those_of_the_definition():
    """They may never change: equal seeds have to give equal images in later versions."""

    def draw(first: int, second: int, purpose: int) -> float:
        mask = (1 << 64) - 1
        state = first * 0xD1342543DE82EF95 & mask
        state = (state ^ (state >> 32)) + second * 0x9E3779B97F4A7C15
        state = (state + purpose * 0xDA942042E4DD58B5) & mask
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & mask
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB & mask
        return ((state ^ (state >> 31)) >> 11) / (1 << 53)

    seeds = [(0, 0), (7, 123), (-3, 1 << 62), (-(1 << 63), -1)]
    for purpose in (1, 9):
        expected = [draw(*seed, purpose) for seed in seeds]
        assert _numbers(purpose, np.array(seeds, np.int64)).tolist() == expected


@pytest.mark.parametrize("alpha", [1e-6, 0.01, 0.2, 1.0, 10.0])
def test_shares_have_the_beta_distribution(alpha):
    shares = augmentations._draw_beta(tf.constant(make_seeds(50_000)), alpha).numpy()
    assert shares.dtype == np.float32
    assert 0 <= shares.min() <= shares.max() <= 1
    expected = np.random.default_rng(0).beta(alpha, alpha, 50_000)
    # The greatest distance of the two distribution functions (Kolmogorov and Smirnov).
    points = np.linspace(0.001, 0.999, 500)
    ours, theirs = (np.searchsorted(np.sort(each), points) / 50_000 for each in (shares, expected))
    assert np.abs(ours - theirs).max() < 0.0125


# All of them


def test_equal_seeds_give_equal_pixels_and_others_give_others():
    images = np.repeat(make_images(1), 8, axis=0)
    first = augment(images, make_seeds(8), ALL)
    np.testing.assert_array_equal(augment(images, make_seeds(8), ALL), first)
    second = augment(images, make_seeds(8, first=8), ALL)
    assert len({image.tobytes() for image in [*first, *second]}) == 16


@pytest.mark.parametrize("size", [1, 16])
def test_an_image_does_not_depend_on_its_batch(size):
    """Not even in the last bit: sharded and unsharded training see the same pixels."""
    images, seeds = make_images(35, 64, 56), make_seeds(35)
    whole = augment(images, seeds, ALL)
    for start in range(0, 35, size):
        part = slice(start, start + size)
        np.testing.assert_array_equal(augment(images[part], seeds[part], ALL), whole[part])


def test_a_step_gets_the_same_random_numbers_beside_others():
    images, seeds = make_images(8), make_seeds(8)
    together = augment(images, seeds, "color=0.5,rotate=30")
    apart = augment(augment(images, seeds, "color=0.5"), seeds, "rotate=30")
    np.testing.assert_array_equal(together, apart)


def test_nothing_leaves_pixels_and_labels_untouched():
    images, labels = tf.constant(make_images(4)), tf.constant([0, 1, 2, 3], tf.int64)
    text = "color=0,rotate=0,cutout=0,mixup=0"
    for augmentation in (Augmentation(), Augmentation(True, True), parse_augmentation(text)):
        same = augment_batch(images, labels, tf.constant(make_seeds(4)), augmentation)
        assert same[0] is images
        assert same[1] is labels


def test_a_pipeline_and_eager_execution_give_the_same():
    images, seeds = make_images(10), make_seeds(10)
    augmentation = parse_augmentation(ALL + ",mixup=1")
    labels = np.arange(10) % 3

    def change(*batch):
        return augment_batch(*batch, augmentation, 3)

    rows = tf.data.Dataset.from_tensor_slices((images, labels, seeds))
    mapped = rows.batch(4).map(change)
    for batch, changed in zip(rows.batch(4), mapped, strict=True):
        expected = change(*batch)
        np.testing.assert_array_equal(changed[0], expected[0])
        np.testing.assert_allclose(changed[1], expected[1], atol=1e-6)
    assert mapped.element_spec == (
        tf.TensorSpec((None, 48, 40, 3), tf.uint8),
        tf.TensorSpec((None, 3), tf.float32),
    )


# Each of them


# A half of them is shown by test_api.py.
@pytest.mark.parametrize(("share", "least", "most"), [(0.1, 15, 75), (1, 400, 400)])
def test_a_share_of_the_images_is_mirrored(share, least, most):
    image = make_images(1)[0]
    mirrored = 0
    for seed in make_seeds(400):
        found = flip_image(tf.constant(image), tf.constant(seed), share).numpy()
        is_mirrored = np.array_equal(found, image[:, ::-1])
        assert is_mirrored or np.array_equal(found, image)
        mirrored += is_mirrored
    assert least <= mirrored <= most


def test_colors_are_those_of_three_steps_in_a_row():
    """Without pixels that a step pushes beyond black or white."""
    images = np.random.default_rng(0).integers(90, 160, (16, 48, 40, 3)).astype(np.uint8)
    seeds, strength = make_seeds(16), 0.3
    found = augment(images, seeds, f"color={strength}").astype(float)
    draws = [
        1 + strength * (2 * _numbers(purpose, seeds) - 1)[:, None, None, None]
        for purpose in (2, 3, 4)  # Brightness, contrast, saturation.
    ]
    pixels = images * draws[0]
    mean = (pixels @ LUMINANCE).mean((1, 2))[:, None, None, None]
    pixels = mean + (pixels - mean) * draws[1]
    gray = (pixels @ LUMINANCE)[..., None]
    pixels = gray + (pixels - gray) * draws[2]
    np.testing.assert_allclose(found, pixels, atol=0.6)


def test_colors_change_in_every_image_and_stay_in_their_bounds():
    images = np.full((200, 16, 16, 3), 100, np.uint8)
    images[:, :8] += 20
    found = augment(images, make_seeds(200), "color=0.4")
    means = found.mean((1, 2, 3)) / 110
    assert 0.59 < means.min() < 0.63
    assert 1.37 < means.max() < 1.41
    contrast = (found[:, 8:].mean((1, 2, 3)) - found[:, :8].mean((1, 2, 3))) / -20 / means
    assert 0.55 < contrast.min() < 0.67
    assert 1.33 < contrast.max() < 1.45
    assert (found != images).any((1, 2, 3)).sum() > 195


def test_no_color_wraps_around():
    images = np.zeros((64, 16, 16, 3), np.uint8)
    images[:, :8] = 255
    found = augment(images, make_seeds(64), "color=1").astype(int)
    assert (found[:, :8] >= found[:, 8:]).all()
    assert found.max() == 255
    assert found.min() == 0


@pytest.mark.parametrize("height_width", [(49, 49), (48, 64), (65, 40)])
@pytest.mark.parametrize("degrees", [-120.0, -7.5, 30.0, 90.0])
def test_rotation_is_pillows(height_width, degrees):
    height, width = height_width
    y, x = np.mgrid[0:height, 0:width]
    planes = (x * 255 / width, y * 255 / height, (x + y) * 255 / (width + height))
    image = np.stack(planes, -1).astype(np.uint8)
    angles = tf.constant([degrees], tf.float64)
    [found] = augmentations._rotate(tf.constant(image[None]), angles).numpy()
    rotate = Image.fromarray(image).rotate
    expected = np.asarray(rotate(degrees, Image.Resampling.BILINEAR))
    # Pillow fills the corners; they are compared elsewhere.
    ones = Image.fromarray(np.full((height, width), 255, np.uint8))
    inside = np.asarray(ones.rotate(degrees, Image.Resampling.BILINEAR)) == 255
    inside[[0, -1]] = inside[:, [0, -1]] = False
    assert inside.mean() > 0.3
    difference = np.abs(found.astype(int) - expected)[inside]
    assert difference.max() <= 2
    assert difference.mean() < 0.7


def test_rotation_reflects_the_edges():
    image = np.full((1, 40, 40, 3), 200, np.uint8)
    angles = tf.constant([45.0], tf.float64)
    assert (augmentations._rotate(tf.constant(image), angles).numpy() == 200).all()


def test_angles_are_spread_over_both_sides():
    """Where the bright upper half of an image has gone, tells its angle."""
    images = np.zeros((300, 65, 65, 3), np.uint8)
    images[:, :32] = 200
    found = augment(images, make_seeds(300), "rotate=30")[..., 0].astype(float)
    y, x = np.mgrid[-32:33, -32:33]
    disk = (x**2 + y**2 <= 32**2) * found
    angles = np.degrees(np.arctan2(-(disk * x).sum((1, 2)), -(disk * y).sum((1, 2))))
    assert -30.5 < angles.min() < -28
    assert 28 < angles.max() < 30.5
    counts, _ = np.histogram(angles, 6, (-31, 31))
    assert counts.min() > 25


@pytest.mark.parametrize(("share", "side"), [(0.25, 8), (0.1, 3), (1.0, 32)])
def test_cutout_is_a_gray_square_anywhere(share, side):
    height, width = 32, 50
    images = np.full((1500, height, width, 3), 255, np.uint8)
    found = augment(images, make_seeds(1500), f"cutout={share}")
    assert set(np.unique(found)) == {128, 255}
    covered = (found == 128).all(-1)
    np.testing.assert_array_equal(covered, (found == 128).any(-1))
    rows, columns = covered.any(2), covered.any(1)
    np.testing.assert_array_equal(covered, rows[:, :, None] & columns[:, None, :])
    for lines, length in ((rows, height), (columns, width)):
        sizes, firsts = lines.sum(1), lines.argmax(1)
        assert sizes.max() == side
        lasts = firsts + sizes - 1
        assert all(lines[i, firsts[i] : lasts[i] + 1].all() for i in range(1500))
        # Smaller ones end at an edge, and never hold less than their half.
        assert ((sizes == side) | (firsts == 0) | (lasts == length - 1)).all()
        assert sizes.min() >= side // 2
        # The center is equally often in each place.
        centers = np.where(firsts > 0, firsts, lasts + 1 - side) + side // 2
        counts = np.bincount(centers, minlength=length)
        assert len(counts) == length
        assert ((counts - 1500 / length) ** 2 / (1500 / length)).sum() < length + 60


def test_mixup_mixes_pixels_and_labels_alike():
    images = np.zeros((5, 8, 8, 3), np.uint8)
    images[:] = np.array([0, 255, 30, 200, 100], np.uint8)[:, None, None, None]
    labels = tf.constant([0, 1, 2, 3, 4], tf.int64)
    found, mixed = augment_batch(
        tf.constant(images), labels, tf.constant(make_seeds(5)), Augmentation(mixup=1.0), 6
    )
    assert mixed.dtype == tf.float32
    assert mixed.shape == (5, 6)
    shares = mixed.numpy()[range(5), range(5)]
    assert ((shares > 0) & (shares < 1)).all()
    assert len(set(shares)) == 5
    expected = np.eye(6)[:5] * shares[:, None] + np.eye(6)[[4, 0, 1, 2, 3]] * (1 - shares[:, None])
    np.testing.assert_allclose(mixed, expected, atol=1e-6)
    own = shares[:, None, None, None]
    blend = images * own + np.roll(images, 1, axis=0) * (1 - own)
    np.testing.assert_allclose(found.numpy(), blend, atol=0.51)


def test_mixup_of_one_image_with_itself_changes_nothing():
    images = make_images(1)
    found, mixed = augment_batch(
        tf.constant(images),
        tf.constant([2], tf.int64),
        tf.constant(make_seeds(1)),
        Augmentation(mixup=0.2),
        3,
    )
    np.testing.assert_array_equal(found, images)
    np.testing.assert_allclose(mixed, [[0, 0, 1]], atol=1e-6)


def test_mixup_needs_the_number_of_labels():
    batch = (tf.zeros((2, 8, 8, 3), tf.uint8), tf.zeros(2, tf.int64), tf.zeros((2, 2), tf.int64))
    with pytest.raises(UsageError, match="mixup needs num_classes"):
        augment_batch(*batch, Augmentation(mixup=0.2))
