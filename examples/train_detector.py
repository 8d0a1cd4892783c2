"""A detector of torchvision, trained on boxes that darkroom wrote, and its results.

    python examples/train_detector.py records runs/detector
    darkroom evaluate --results runs/detector records

It needs no TensorFlow. The results are COCO's: what pycocotools and `darkroom evaluate` judge.
"""

import json
import os
import sys

import torch
from torchvision.models.detection import fcos_resnet50_fpn

import darkroom


def train(records, output_dir, epochs=10, batch_size=4, image_size=640, learning_rate=1e-3):
    """Trains on the split train, writes results of the split eval, and returns the last loss.

    Args:
        records: The dataset.
        output_dir: Folder for detector.pt, results.json, and labels.txt, whose lines they count.
        epochs: How often each image is seen.
        batch_size: Images in a batch.
        image_size: The network sees images with a shorter side of so many pixels.
        learning_rate: Of AdamW.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # Images keep their sizes, and boxes are in their pixels: the detector scales both.
    data = darkroom.load(
        records,
        image_size=None,
        batch_size=batch_size,
        training=True,
        framework="torch",
        first_label=1,
        columns=["image/filename"],
        transform=prepare,
    )
    torch.manual_seed(0)
    num_classes = 1 + len(data["train"].class_names)  # 0 is the background
    model = fcos_resnet50_fpn(
        weights=None,
        weights_backbone=None,
        num_classes=num_classes,
        min_size=image_size,
        score_thresh=0.05,
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate)
    loss = torch.tensor(0.0)
    for _ in range(epochs):
        model.train()
        for batch in data["train"].to_loader():
            # Where nobody looked, an image without objects teaches a fault.
            looked_at = [each for each in batch if each[1]["annotated"]]
            if not looked_at:
                continue
            images, targets, _ = zip(*looked_at, strict=True)
            loss = sum(model([*to(images, device)], [*to(targets, device)]).values())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    os.makedirs(output_dir, exist_ok=True)
    torch.save(model.state_dict(), os.path.join(output_dir, "detector.pt"))
    with open(os.path.join(output_dir, "results.json"), "w") as file:
        json.dump([*detect(model, data["eval"], device)], file)
    with open(os.path.join(output_dir, "labels.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{name}\n" for name in data["train"].class_names)
    return {"loss": float(loss.detach())}


def prepare(image, target):
    """Returns an image and its objects as the detector takes them, without crowds."""
    is_object = ~target["is_crowd"]
    objects = {name: target[name][is_object] for name in ("boxes", "labels")}
    return image / 255, {**objects, "annotated": target["annotated"]}


def to(values, device):
    """Yields images, or dicts of objects, on a device."""
    for each in values:
        is_dict = isinstance(each, dict)
        yield {k: v.to(device) for k, v in each.items()} if is_dict else each.to(device)


def detect(model, batches, device):
    """Yields what is found in images, as results of COCO; they are named by their files."""
    model.eval()
    with torch.inference_mode():
        for batch in batches:
            images, _, columns = zip(*batch, strict=True)
            found = model([*to(images, device)])
            for each, column in zip(found, columns, strict=True):
                boxes = each["boxes"]
                boxes[:, 2:] -= boxes[:, :2]
                values = (boxes, each["labels"], each["scores"])
                for box, label, score in zip(*(v.tolist() for v in values), strict=True):
                    yield {
                        "image_id": column["image/filename"],
                        "category_id": label,
                        "bbox": box,
                        "score": score,
                    }


if __name__ == "__main__":
    records, output_dir, *rest = sys.argv[1:]
    print(train(records, output_dir, *map(int, rest)))
