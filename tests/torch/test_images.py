"""What batches have: kinds of labels, columns, transforms, other libraries, the guide."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import darkroom

from ..docs.blocks import list_pages, run_page, write_given
from ..kfp.tasks import Cluster
from ..targets.conftest import FLAGS, LABELS, datasets, listed  # noqa: F401
from .conftest import DARKEST, EVALUATED, TRAINED

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
ROOT = Path(__file__).parents[2]
RUNNER = "make test-torch"


def expect(kind: str, number: int, names) -> list[float] | int:
    """The label of an image of `listed`."""
    if kind == "label":
        return names.index("odd" if number % 2 else "even")
    if kind == "labels":
        known = LABELS[number % 8]
        return [float(name in known) if known else math.nan for name in names]
    return [number / 2, 100 - number]


@pytest.mark.parametrize("kind", FLAGS)
def test_every_kind_of_label(datasets, kind):  # noqa: F811
    given = {"image_size": (12, 16), "columns": ["image/filename"], "framework": "torch"}
    data = darkroom.load(datasets[kind], batch_size=5, **given)
    names = data["eval"].class_names
    assert names == (data.labels or ("w", "h"))
    seen = []
    for images, labels, columns in torch.utils.data.DataLoader(data["eval"], None, num_workers=1):
        assert images.shape[1:] == (3, 12, 16)
        assert labels.dtype == (torch.int64 if kind == "label" else torch.float32)
        numbers = [int(Path(name).stem) for name in columns["image/filename"]]
        expected = torch.tensor([expect(kind, each, names) for each in numbers], dtype=labels.dtype)
        assert torch.allclose(labels, expected, equal_nan=True)
        seen += numbers
    assert sorted(seen) == list(range(24, 32))


def test_columns_have_the_types_of_features_and_a_value_where_a_record_has_none(records):
    columns = ["number", "price", "note", "image/format", "image/encoded"]
    data = darkroom.load(records, image_size=8, framework="torch", columns=columns)
    for *_, found in data["train"]:
        assert list(found) == columns
        for number, price, note, form, encoded in zip(*found.values(), strict=True):
            has_value = number % 5 != 0
            assert note == (f"n{number}" if has_value else "")
            assert price == number / 4 if has_value else torch.isnan(price)
            assert (form.lower(), encoded[:2]) == ("jpeg", b"\xff\xd8")


def test_transforms_of_torchvision_with_and_without_a_size(records):
    v2 = pytest.importorskip("torchvision.transforms.v2")
    to_floats = v2.ToDtype(torch.float32, scale=True)
    given = {"framework": "torch", "transform": to_floats, "columns": ["number"]}
    sized = darkroom.load(records, image_size=8, **given)["eval"]
    images, labels, columns = next(iter(torch.utils.data.DataLoader(sized, None, num_workers=1)))
    assert (images.dtype, images.shape) == (torch.float32, (25, 3, 8, 8))
    assert torch.equal(labels, columns["number"] % 3)
    shown = images.mean((1, 2, 3)) * 255 - DARKEST
    assert (shown - columns["number"]).abs().max() < 1.5
    steps = v2.Compose([v2.RandomCrop(6), to_floats])
    whole = darkroom.load(records, framework="torch", transform=steps, batch_size=10)["eval"]
    pairs = [pair for batch in torch.utils.data.DataLoader(whole, None) for pair in batch]
    assert len(pairs) == 25
    assert all(image.shape == (3, 6, 6) and label in (0, 1, 2) for image, label in pairs)
    uncropped = darkroom.load(records, framework="torch", transform=to_floats)["eval"]
    assert {image.shape for image, _ in next(iter(uncropped))} == {(3, 12, 10)}


def test_lightning_trains_and_evaluates_on_every_image(records, tmp_path):
    lightning = pytest.importorskip("lightning")
    seen = {"train": [], "eval": []}

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Linear(3, 3)

        def training_step(self, batch, number, split="train"):
            images, labels, columns = batch
            seen[split] += columns["number"].tolist()
            return torch.nn.functional.cross_entropy(self.head(images.float().mean((2, 3))), labels)

        def validation_step(self, batch, number):
            self.training_step(batch, number, "eval")

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 1e-3)

    class Data(lightning.LightningDataModule):
        def setup(self, stage):
            given = {"image_size": 8, "batch_size": 10, "columns": ["number"], "training": True}
            self.data = darkroom.load(records, framework="torch", **given)

        def train_dataloader(self):
            return torch.utils.data.DataLoader(self.data["train"], None, num_workers=1)

        def val_dataloader(self):
            return torch.utils.data.DataLoader(self.data["eval"], None)

    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        num_sanity_val_steps=0,
        default_root_dir=tmp_path,
        enable_progress_bar=False,
    )
    trainer.fit(Model(), Data())
    first, second = seen["train"][:TRAINED], seen["train"][TRAINED:]
    assert sorted(first) == sorted(second) == list(range(TRAINED))
    assert first != second
    assert sorted(seen["eval"]) == sorted([*range(TRAINED, TRAINED + EVALUATED)] * 2)


def test_a_transform_of_albumentations_gets_arrays(records):
    albumentations = pytest.importorskip("albumentations")
    flip = albumentations.VerticalFlip(p=1)
    given = {"image_size": (12, 10), "framework": "numpy"}
    plain = darkroom.load(records, **given)["eval"]
    turned = darkroom.load(records, transform=lambda x: flip(image=x)["image"], **given)["eval"]
    [(images, _)], [(others, _)] = plain, turned
    assert np.array_equal(images[:, ::-1], others)


def test_grain_takes_the_images_as_a_source(records):
    grain = pytest.importorskip("grain")
    given = {"framework": "numpy", "columns": ["number"]}
    images = darkroom.load(records, image_size=8, **given)["train"].images
    dataset = grain.MapDataset.source(images).shuffle(seed=1).batch(10)
    batches = list(dataset.to_iter_dataset(grain.ReadOptions(num_threads=4)))
    assert len(batches) == TRAINED // 10
    for pixels, labels, columns in batches:
        assert pixels.shape == (10, 8, 8, 3)
        assert np.abs(pixels.mean((1, 2, 3)) - DARKEST - columns["number"]).max() < 1.5
        assert np.array_equal(labels, columns["number"] % 3)
    assert len({number for *_, columns in batches for number in columns["number"]}) == TRAINED


@pytest.mark.parametrize("page", list_pages(RUNNER))
def test_the_code_of_the_guides_runs(page, tmp_path, monkeypatch):
    write_given(tmp_path)
    monkeypatch.chdir(tmp_path)
    run_page(page, {RUNNER}, {"darkroom": darkroom})


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The digits of scikit-learn, converted; they come in turn, from 0 to 9."""
    from sklearn.datasets import load_digits

    digits, folder = load_digits(), tmp_path_factory.mktemp("digits")
    for number, (values, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        split = "validation" if number // 10 % 5 == 4 else "train"
        path = folder / "images" / split / str(label) / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((values * (255 / 16)).astype(np.uint8)).save(path)
    darkroom.convert(folder / "images", folder / "records")
    return folder / "records"


def run_example(command, *arguments):
    program = str(ROOT / "examples" / command[-1])
    done = subprocess.run(
        [sys.executable, *command[:-1], program, *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return float(re.search(r"^accuracy ([0-9.]+), waited", done.stdout, re.M)[1]), done.stdout


def test_a_training_of_kfp_goes_on_in_two_processes_and_is_as_good_as_ours(
    digits, tmp_path, monkeypatch, capfd
):
    monkeypatch.syspath_prepend(ROOT / "examples")
    cluster = Cluster(tmp_path / "cluster", monkeypatch, capfd)
    given = {"function": "train_torch:train", "arguments": {"epochs": 1.0, "image_size": 16.0}}
    done = cluster.run("train_with_function", dataset_uri=str(digits), **given)
    assert 0 < done.artifacts["training_metrics"].metadata["accuracy"] < 1
    folder = cluster.find(done.artifacts["trained_model"])
    assert os.listdir(folder) == ["checkpoint.pt"]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    accuracy, text = run_example([*torchrun, "train_torch.py"], digits, folder, 4, 16)
    assert re.findall(r"^epoch (\d)/4", text, re.M) == ["2", "3", "4"]
    assert accuracy >= 0.97


def test_a_training_with_keras_on_jax_is_as_good_as_ours(digits, tmp_path):
    accuracy, _ = run_example(["train_jax.py"], digits, tmp_path, 4, 16)
    assert accuracy >= 0.97
    assert (tmp_path / "model.keras").is_file()
