"""Boxes in batches of PyTorch: for torchvision's transforms and detectors, Albumentations, GPUs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import darkroom
from darkroom.dataset.index import read_index

from ..kfp.tasks import Cluster
from ..reader.colored import LABELS, check_colors, get_size, list_objects, write_records
from .test_gpu import decoder  # noqa: F401

torch = pytest.importorskip("torch")
tv_tensors = pytest.importorskip("torchvision.tv_tensors")
v2 = pytest.importorskip("torchvision.transforms.v2")
pytestmark = pytest.mark.torch
SIZE = (96, 128)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_records(tmp_path_factory.mktemp("boxes"))


def load(records: Path, **more):
    more = {"image_size": SIZE, "batch_size": 5, "framework": "torch", "min_visible": 0} | more
    return darkroom.load(records, columns=["number"], **more)


def check(batches, size: tuple[int, int] | None = SIZE, first_label: int = 0) -> int:
    """Checks that boxes are where their colors are, and returns how many there are."""
    count = 0
    for batch in batches:
        are_apart = not torch.is_tensor(batch[0])
        images, targets, columns = zip(*batch, strict=True) if are_apart else batch
        numbers = columns["number"] if isinstance(columns, dict) else [c["number"] for c in columns]
        for image, target, number in zip(images, targets, numbers, strict=True):
            assert isinstance(target["boxes"], tv_tensors.BoundingBoxes)
            assert target["boxes"].canvas_size == (size or get_size(int(number)))
            assert target["boxes"].format == tv_tensors.BoundingBoxFormat.XYXY
            assert {name: values.dtype for name, values in target.items()} == {
                "boxes": torch.float32,
                "labels": torch.int64,
                "is_crowd": torch.bool,
                "difficult": torch.bool,
                "area": torch.float32,
                "annotated": torch.bool,
            }
            pixels = image.numpy().transpose(1, 2, 0)
            count += check_colors(pixels, target, first_label)
    return count


@pytest.mark.parametrize("workers", [0, 2])
def test_targets_are_bounding_boxes_of_torchvision(records, workers):
    data = load(records, first_label=1)
    loader = data["train"].to_loader(num_workers=workers)
    assert check(loader, first_label=1) == 24 - 2
    for image, target, columns in data["eval"].images:
        objects = list_objects()[int(columns["number"])]
        assert check_colors(image.permute(1, 2, 0), target, 1) == len(objects)


def test_transforms_of_torchvision_change_images_and_boxes(records):
    steps = v2.Compose([v2.RandomHorizontalFlip(1), v2.Resize((48, 64))])
    more = {"training": True, "augment": "crop", "transform": steps}
    assert check(load(records, **more)["train"], (48, 64)) > 5
    # Images that keep their sizes, too.
    flip = {"image_size": None, "transform": v2.RandomHorizontalFlip(1)}
    assert check(load(records, **flip)["train"], None) == 24 - 2
    whole = load(records, transform=v2.RandomHorizontalFlip(1))["train"].to_loader(num_workers=2)
    assert check(whole) == 24 - 2


def test_a_detector_of_torchvision_learns_from_a_batch(records):
    detection = pytest.importorskip("torchvision.models.detection")
    model = detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=1 + len(LABELS)
    )
    images, targets, _ = next(iter(load(records, first_label=1)["train"]))
    losses = model(list(images / 255), targets)
    assert all(torch.isfinite(loss) for loss in losses.values())


def test_a_detector_is_a_task_of_kfp_and_its_results_are_of_coco(
    records, tmp_path, monkeypatch, capfd
):
    pytest.importorskip("torchvision.models.detection")
    monkeypatch.syspath_prepend(ROOT / "examples")
    cluster = Cluster(tmp_path / "cluster", monkeypatch, capfd)
    given = {"function": "train_detector:train", "arguments": {"epochs": 1.0, "image_size": 64.0}}
    done = cluster.run("train_with_function", dataset_uri=str(records), **given)
    assert done.artifacts["training_metrics"].metadata["loss"] > 0
    folder = Path(cluster.find(done.artifacts["trained_model"]))
    results = json.loads((folder / "results.json").read_text())
    names = {Path(row["uri"]).name for row in read_index(f"{records}/index").to_pylist()}
    assert results
    judged = darkroom.evaluate(None, records, "eval", results=folder)
    assert 0 <= judged.score < 0.5
    for each in results:
        assert (Path(each["image_id"]).name in names, each["category_id"] in (1, 2, 3)) == (
            True,
        ) * 2
        left, top, width, height = each["bbox"]
        assert 0 <= left <= left + width <= 401
        assert 0 <= top <= top + height <= 331
        assert 0.05 < each["score"] <= 1


def test_albumentations_is_given_both_by_three_lines(records):
    albumentations = pytest.importorskip("albumentations")
    boxes = albumentations.BboxParams(format="pascal_voc", label_fields=["labels"])
    steps = albumentations.Compose([albumentations.HorizontalFlip(p=1)], bbox_params=boxes)

    def transform(image, target):
        found = steps(image=image, bboxes=target["boxes"], labels=target["labels"])
        return found["image"], {"boxes": found["bboxes"], "labels": found["labels"]}

    seen = 0
    for images, targets, _ in load(records, framework="numpy", transform=transform)["train"]:
        for image, target in zip(images, targets, strict=True):
            target["labels"] = [int(label) for label in target["labels"]]
            seen += check_colors(image, target)
    assert seen == 24 - 2


def test_boxes_are_tensors_where_torchvision_is_missing(records, monkeypatch):
    monkeypatch.setattr("darkroom.reader.pytorch._find_bounding_boxes", lambda: None)
    for _, targets, columns in load(records)["train"]:
        for target, number in zip(targets, columns["number"], strict=True):
            assert type(target["boxes"]) is torch.Tensor
            assert len(target["boxes"]) == len(list_objects()[int(number)] or ())


def test_batches_of_a_gpu_have_boxes(records, decoder):  # noqa: F811
    more = {"device": "cuda", "training": True, "augment": "crop,flip"}
    assert check(load(records, **more)["train"]) > 5
    assert decoder.calls
    flipped = load(records, device="cuda", transform=v2.RandomHorizontalFlip(1))["train"]
    assert check(flipped) == 24 - 2
