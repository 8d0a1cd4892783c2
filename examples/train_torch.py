"""A PyTorch training of one's own, on records that darkroom wrote. It needs no TensorFlow.

    python examples/train_torch.py records runs/torch
    torchrun --nproc-per-node 2 examples/train_torch.py records runs/torch

It saves its state in the middle of epochs, too. Ended anywhere, and started again with any number
of processes that divides the batch, it goes on with the next batch after its checkpoint.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

import darkroom


class Waiting:
    """Iterates over batches, and counts the seconds in which nothing else could be done."""

    def __init__(self):
        self.seconds, self.started = 0.0, time.monotonic()

    def iterate(self, batches):
        """Yields the batches."""
        batches = iter(batches)
        while True:
            before = time.monotonic()
            batch = next(batches, None)
            self.seconds += time.monotonic() - before
            if batch is None:
                return
            yield batch

    @property
    def share(self):
        """The share of the time since the start."""
        return self.seconds / (time.monotonic() - self.started)


class SmallNet(nn.Module):
    """A small network on pixels from 0 to 255."""

    def __init__(self, num_classes):
        super().__init__()
        layers = []
        for inner, outer in ((3, 16), (16, 32), (32, 64)):
            layers += [nn.Conv2d(inner, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.ReLU()]
            layers.append(nn.MaxPool2d(2))
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(64, num_classes)

    def forward(self, images):
        """Returns a number for each class, float32 [B, C]."""
        return self.head(self.layers(images.float() / 255).mean((2, 3)))


def train(
    records, output_dir, epochs=8, image_size=32, batch_size=64, augment="none", save_every=50
):
    """Trains on all processes of torchrun, or alone, and returns the accuracy on eval.

    Args:
        records: The dataset.
        output_dir: Folder for checkpoint.pt, which all processes can read.
        epochs: How often each image is seen.
        image_size: Height and width in pixels.
        batch_size: Images in a batch of all processes together.
        augment: Random changes. Digits are not mirrored.
        save_every: Batches between two checkpoints.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    has_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if has_gpu else "cpu"
    if world > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if has_gpu else "gloo")
    is_first = world == 1 or dist.get_rank() == 0
    data = darkroom.load(
        records,
        image_size=image_size,
        batch_size=batch_size // world,
        training=True,
        augment=augment,
        framework="torch",
    )
    dataset = data["train"]
    torch.manual_seed(0)
    model = SmallNet(dataset.num_classes).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters())
    path, epoch = os.path.join(output_dir, "checkpoint.pt"), 0
    if os.path.exists(path):
        saved = torch.load(path, map_location=device)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        dataset.load_state_dict(saved["data"])
        epoch = saved["data"]["epoch"]
    wrapped = nn.parallel.DistributedDataParallel(model) if world > 1 else model

    def save(done):
        if is_first:
            os.makedirs(output_dir, exist_ok=True)
            states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**states, "data": dataset.state_dict(done)}, path + ".new")
            os.replace(path + ".new", path)

    loader = dataset.to_loader()
    waiting = Waiting()
    for number in range(epoch, epochs):
        model.train()
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * (1 - number / epochs)
        done = 0
        for images, labels in waiting.iterate(loader):
            loss = nn.functional.cross_entropy(
                wrapped(images.to(device, non_blocking=True)), labels.to(device)
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
            if done % save_every == 0:
                save(done)
        save(done)
        accuracy = measure(model, data["eval"], device)
        if is_first:
            print(f"epoch {number + 1}/{epochs}, accuracy {accuracy:.4f}", flush=True)
    accuracy = measure(model, data["eval"], device)
    if is_first:
        print(f"accuracy {accuracy:.4f}, waited {waiting.share:.1%} of the time for input")
    return {"accuracy": accuracy}


def measure(model, batches, device):
    """Returns the accuracy. Of several processes, each has a part of the images."""
    model.eval()
    counts = torch.zeros(2, device=device)
    with torch.inference_mode():
        # Images that only fill up the last batch of a process have the weight 0.
        for images, labels, *weights in batches:
            is_right = model(images.to(device)).argmax(1).cpu() == labels
            weight = weights[0] if weights else torch.ones(len(labels))
            counts += torch.stack([(is_right * weight).sum(), weight.sum()]).to(device)
    if dist.is_initialized():
        dist.all_reduce(counts)
    return float(counts[0] / counts[1])


if __name__ == "__main__":
    records, output_dir, *rest = sys.argv[1:]
    train(records, output_dir, *map(int, rest))
    if dist.is_initialized():
        dist.destroy_process_group()
