"""Batches that a GPU decodes, all but nvJPEG itself: a stand-in decodes on the CPU."""

from __future__ import annotations

import pytest
import simplejpeg

import darkroom
from darkroom.errors import DataError, UsageError

from ..reader.conftest import photos, records  # noqa: F401
from ..reader.test_strangers import convert_one, save  # noqa: F401

torch = pytest.importorskip("torch")
gpu = pytest.importorskip("darkroom.reader.gpu")
pytestmark = pytest.mark.torch


class StandIn:
    """Decodes a list of JPEGs as nvJPEG does: not at all if it does not take one of them."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.refuses = lambda jpeg: False

    def __call__(self, jpegs: list[torch.Tensor]) -> list[torch.Tensor]:
        self.calls.append(len(jpegs))
        data = [jpeg.numpy().tobytes() for jpeg in jpegs]
        if any(map(self.refuses, data)):
            raise RuntimeError("Error while decoding JPEG images: Failed to decode batch: 3")
        pixels = [simplejpeg.decode_jpeg(each, fastdct=True, strict=False) for each in data]
        return [torch.from_numpy(each).permute(2, 0, 1).contiguous() for each in pixels]


@pytest.fixture
def decoder(monkeypatch) -> StandIn:
    stand_in = StandIn()
    made = gpu.Decoder(torch.device("cpu"), stand_in)
    monkeypatch.setattr(gpu, "find_decoder", lambda device: made)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    return stand_in


def load(folder, device="cuda", **given):
    given = {"image_size": (64, 96), "batch_size": 75, "training": True} | given
    given = {"columns": ["image/filename", "price"], "device": device} | given
    return darkroom.load(folder, framework="torch", **given)["train"]


@pytest.mark.parametrize(
    ("steps", "more", "mean", "most"),
    [
        ("flip", {"resize": "center_crop", "scaled_decoding": False}, 0.1, 1),
        ("crop,flip", {"scaled_decoding": False}, 0.1, 1),
        ("none", {"batch_size": 32}, 0.5, 40),
        ("crop,flip,color,rotate,cutout,mixup", {}, 0.5, 40),
    ],
)
def test_batches_are_those_of_the_cpu(records, decoder, steps, more, mean, most):  # noqa: F811
    """They differ by rounding, and large images by how they are made smaller."""
    found, expected = (load(records, device, augment=steps, **more) for device in ("cuda", None))
    for _ in range(2):
        for batch, other in zip(found, expected, strict=True):
            assert batch[0].dtype == torch.uint8
            assert batch[0].is_contiguous(memory_format=torch.channels_last)
            assert torch.equal(batch[1], other[1])
            assert batch[2]["image/filename"] == other[2]["image/filename"]
            assert torch.equal(batch[2]["price"], other[2]["price"])
            difference = (batch[0].int() - other[0].int()).abs()
            assert difference.float().mean() < mean
            assert difference.max() <= most
    assert found.state_dict() == expected.state_dict()
    assert torch.equal(found.images[3][0], expected.images[3][0])


def test_images_that_take_too_much_memory_together_are_decoded_in_parts(
    records,  # noqa: F811
    decoder,
    monkeypatch,
):
    [(whole, *_)] = load(records)
    monkeypatch.setattr(gpu, "_MOST_PIXELS", 400_000)
    [(images, *_)] = load(records)
    assert torch.equal(images, whole)
    first, *parts = decoder.calls
    assert len(parts) > 5
    assert sum(parts) == first


def test_a_jpeg_that_is_refused_is_decoded_on_the_cpu_and_not_tried_again(records, decoder):  # noqa: F811
    decoder.refuses = lambda jpeg: simplejpeg.decode_jpeg_header(jpeg)[2] == "Gray"
    found, expected = load(records), load(records, None)
    for calls in ([45, *[1] * 45], [30]):
        [(images, _, columns)], [(others, *_)] = found, expected
        assert decoder.calls == calls
        decoder.calls.clear()
        is_gray = torch.tensor(["gray.jpg" in name for name in columns["image/filename"]])
        assert torch.equal(images[is_gray], others[is_gray])
        assert not torch.equal(images, others)


def test_a_jpeg_that_nothing_decodes_is_named(decoder, convert_one):  # noqa: F811
    jpeg = save("JPEG")
    without_tables = jpeg[: jpeg.index(b"\xff\xdb")] + jpeg[jpeg.index(b"\xff\xc0") :]
    decoder.refuses = lambda jpeg: True
    named = "data_tfrecord-00000-of-00001: the image of record 0 cannot be decoded: Quantization"
    with pytest.raises(DataError, match=named):
        next(iter(load(convert_one("jpeg", without_tables), batch_size=1, columns=())))


def test_a_transform_is_given_each_image_after_its_changes(records, decoder):  # noqa: F811
    [(images, *_)] = load(records, augment="flip", transform=lambda image: image.float().mean(2))
    [(expected, *_)] = load(records, augment="flip")
    assert torch.equal(images, expected.float().mean(3))


def test_a_worker_cannot_decode_on_a_gpu(records, decoder):  # noqa: F811
    [(images, *_)] = load(records).to_loader()
    assert torch.equal(images, next(iter(load(records)))[0])
    with pytest.raises(UsageError, match=r"Loop over the data itself, or to_loader\(\) of it"):
        next(iter(load(records).to_loader(num_workers=1)))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"device": "cpu"}, "device is 'cpu', expected cuda"),
        ({"device": "cuda:1"}, "device is 'cuda:1', expected cuda .* PyTorch finds 1 GPUs"),
        ({"image_size": None, "transform": len}, "batches of images of one size"),
    ],
)
def test_a_device_that_cannot_be_used_is_named(records, decoder, given, said):  # noqa: F811
    with pytest.raises(UsageError, match=said):
        load(records, **given)
