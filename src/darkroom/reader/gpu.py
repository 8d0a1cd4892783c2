"""Batches of PyTorch whose JPEGs a GPU decodes.

Not measured: this was never run on a GPU, only with a stand-in for nvJPEG (decision 50). If nobody
has measured it by the next release, it goes.

Threads read and check records, as for any batch, and decode what is not for nvJPEG. One more thread
gives the JPEGs of a batch to nvJPEG, and launches what makes views of them: torchvision has one
decoder for a GPU, so more threads would wait for each other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import simplejpeg
import torch
from torch.utils.data import DataLoader, get_worker_info
from torchvision.io import ImageReadMode, decode_jpeg

from darkroom.errors import UsageError
from darkroom.images.views import JPEG_FORM, is_usual_jpeg
from darkroom.reader import tensors
from darkroom.reader.batches import Batch
from darkroom.reader.decoding import Decoding
from darkroom.reader.pytorch import TorchLoader
from darkroom.reader.record_files import Places, RecordFiles

# Threads that read: four keep up with a GPU, and more would wait for Python's lock.
_MOST_THREADS = 4
# Pixels that are decoded at once. Each takes six bytes of the GPU, and a value of a view twelve.
_MOST_PIXELS = 1 << 27

Decode = Callable[[list[torch.Tensor]], Sequence[torch.Tensor | None]]


class Decoder:
    """A thread that decodes and changes images on one device, in streams of its own.

    Args:
        device: The device.
        decode: Returns the pixels of JPEGs, uint8 [3, H, W] each on the device. The JPEGs are
            uint8 [N] on the CPU. It raises a RuntimeError if it does not take one of them.

    Attributes:
        refused: Files and rows of the records that it did not take.
    """

    def __init__(self, device: torch.device, decode: Decode) -> None:
        self.device = device
        self._decode = decode
        self._thread = ThreadPoolExecutor(1, "darkroom-gpu")
        is_gpu = device.type == "cuda"
        streams: Any = (torch.cuda.Stream(device) if is_gpu else None for _ in range(2))
        self._decoding, self._changing = streams
        self._held: Sequence[torch.Tensor | None] = ()
        self.refused: set[tuple[str, int]] = set()

    def run(self, work: Callable[[], None], guard: AbstractContextManager[None]) -> None:
        """Begins work in the thread, within a context that keeps its errors."""

        def run() -> None:
            with guard, torch.cuda.stream(self._changing):
                work()

        self._thread.submit(run)

    def mark(self) -> Any:
        """Returns the event that all work until now is done, None on a CPU."""
        return self._changing and self._changing.record_event()

    def decode(self, jpegs: list[torch.Tensor]) -> Sequence[torch.Tensor | None]:
        """Returns the pixels of JPEGs, None for one that is refused; only for work in the thread.

        torchvision decodes in a stream that waits for no other one, into memory of the stream in
        which it is called. So that is a stream in which nothing else takes memory, and images are
        held until the work on them is done.
        """
        with torch.cuda.stream(self._decoding):
            images = self._try(jpegs)
        if self._changing:
            self._changing.synchronize()
            self._changing.wait_stream(self._decoding)
        self._held = images
        return images

    def _try(self, jpegs: list[torch.Tensor]) -> Sequence[torch.Tensor | None]:
        try:
            return self._decode(jpegs)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:  # It does not say which one it refused.
            if len(jpegs) == 1:
                return [None]
            return [image for jpeg in jpegs for image in self._try([jpeg])]


def find_decoder(device: str) -> Decoder:
    """Returns the decoder of this process for a GPU; `cuda` is the current one."""
    index = torch.device(device).index
    return _make_decoder(torch.cuda.current_device() if index is None else index)


@functools.cache
def _make_decoder(index: int) -> Decoder:
    device = torch.device("cuda", index)
    decode = functools.partial(decode_jpeg, mode=ImageReadMode.RGB, device=device)
    # Where nvJPEG does not work at all, it says so here: later it would seem to refuse each JPEG.
    jpeg = bytearray(simplejpeg.encode_jpeg(np.zeros((16, 16, 3), np.uint8)))
    with torch.cuda.device(device):
        decode([torch.frombuffer(jpeg, dtype=torch.uint8)])
    return Decoder(device, decode)


class GpuLoader(TorchLoader):
    """The batches of a split as tensors on a GPU; see `darkroom.reader.loader.Loader`.

    It is to be looped over itself: threads read, decode and change batches ahead. `images` are on
    the CPU.
    """

    def __init__(self, device: str, *arguments: Any) -> None:
        """See `Loader`; the device is `cuda`, or one of several as `cuda:1`.

        Raises:
            UsageError: There is no such GPU.
        """
        device, count = str(device), torch.cuda.device_count()
        if device not in ("cuda", *(f"cuda:{index}" for index in range(count))) or not count:
            raise UsageError(
                f"device is {device!r}, expected cuda or cuda:NUMBER, and PyTorch finds {count} "
                "GPUs here.",
                "Leave it out to decode on the CPU.",
            )
        self._device = device
        super().__init__(*arguments)

    def to_loader(self, **options: Any) -> DataLoader[Any]:
        """Returns a `DataLoader` without workers: batches are made ahead, and on the GPU."""
        return super().to_loader(**{"num_workers": 0, **options, "pin_memory": False})

    def _count_cores(self) -> int:
        return min(_MOST_THREADS, super()._count_cores())

    def _can_use_processes(self) -> bool:
        return False

    def _make_batches(self, *arguments: Any) -> Iterator[Any]:
        if get_worker_info():
            raise UsageError(
                "This data is decoded on a GPU, which a worker of a DataLoader cannot use.",
                "Loop over the data itself, or to_loader() of it: threads read ahead.",
            )
        yield from super()._make_batches(*arguments)

    def _make_batch(self, *arguments: Any) -> Batch:
        return _GpuBatch(find_decoder(self._device), *arguments)

    def _finish_batch(self, *arguments: Any) -> Any:
        return tuple(map(self._move, super()._finish_batch(*arguments)))

    def _move(self, part: Any) -> Any:
        """Returns numbers on the device, and texts as they are."""
        if isinstance(part, dict):
            return {name: self._move(values) for name, values in part.items()}
        if isinstance(part, list):
            return [self._move(each) if isinstance(each, dict) else each for each in part]
        return part.to(find_decoder(self._device).device, non_blocking=True)


class _GpuBatch(Batch):
    """A batch that the thread of a decoder finishes, on its device."""

    def __init__(self, decoder: Decoder, *arguments: Any) -> None:
        self._decoder = decoder
        super().__init__(*arguments)

    def wait(self) -> tuple[Any, Any, dict[str, Any]]:
        """See `Batch.wait`. The current stream waits for the images, which are on the device."""
        parts = super().wait()
        if self._done:
            stream = torch.cuda.current_stream(self._decoder.device)
            stream.wait_event(self._done)
            if parts[0].is_cuda:  # not where a transform took them from there
                parts[0].record_stream(stream)
        return parts

    def _make_decoding(self, *arguments: Any, **images: Any) -> Decoding:
        return _GpuDecoding(self._decoder, *arguments, **images)

    def _end(self) -> None:
        self._decoder.run(super()._end, self._pass_error())

    def _finish(self) -> tuple[Any, Any]:
        images = self._decoding.finish()
        if self._options.transform is not None:
            images = self._stack()
        self._done = self._decoder.mark()
        return images, self._mix_targets()


class _GpuDecoding(Decoding):
    """The decoding of a batch: here, until JPEGs are read, and the rest on a device."""

    def __init__(
        self, decoder: Decoder, files: RecordFiles, places: Places, *arguments: Any, **images: Any
    ) -> None:
        super().__init__(files, places, *arguments, **images)
        self._decoder = decoder
        self._ends = np.cumsum(places.facts["size_bytes"])
        # PyTorch wants bytes that it could write, so JPEGs are copied.
        self._jpegs = np.empty(self._ends[-1], np.uint8)
        # The numbers of the images that are for the decoder.
        self._kept: set[int] = set()

    def finish(self) -> torch.Tensor:
        """Returns the images on the device, uint8 [N, 3, H, W], and transforms them."""
        here: Any = self._views
        views = torch.empty(here.shape, dtype=torch.uint8, device=self._decoder.device)
        for numbers in self._divide(2 * views[0].numel()):
            self._view(numbers, views)
        if others := sorted({*range(len(views))} - self._kept):
            _put(views, others, tensors.send(here[others], views.device))
        images = tensors.change(views, self.changes).permute(0, 3, 1, 2)
        for number in range(len(images) if self._options.transform else 0):
            self._transform(number, images[number])
        return images

    def _decode(self, number: int, image: memoryview, form: int) -> None:
        """Keeps a JPEG for the decoder; another image is decoded here, into its view."""
        is_refused = form != JPEG_FORM or self._find_key(number) in self._decoder.refused
        if is_refused or not is_usual_jpeg(image, self._shapes[number]):
            super()._decode(number, image, form)
            return
        end = self._ends[number]
        self._jpegs[end - len(image) : end] = np.frombuffer(image, np.uint8)
        self._kept.add(number)

    def _change(self, number: int, view: Any) -> None:
        """Changes nothing yet: all images are changed at once."""

    def _find_key(self, number: int) -> tuple[str, int]:
        return self._files.paths[self._places.files[number]], self._places.rows[number]

    def _divide(self, view_pixels: int) -> list[Any]:
        """Returns the numbers of JPEGs, in parts that take about as much memory as they may."""
        numbers = np.array(sorted(self._kept), np.int64)
        pixels = np.array(self._shapes)[numbers, :2].prod(1) + view_pixels
        ends = np.flatnonzero(np.diff(pixels.cumsum() // _MOST_PIXELS)) + 1
        return [part.tolist() for part in np.split(numbers, ends) if len(part)]

    def _view(self, numbers: list[int], views: torch.Tensor) -> None:
        """Decodes JPEGs into views on the device, and those that are refused on the CPU."""
        jpegs = torch.from_numpy(self._jpegs).tensor_split(torch.from_numpy(self._ends[:-1]))
        decoded = self._decoder.decode([jpegs[number] for number in numbers])
        images, windows = [], []
        for number, image in zip(numbers, decoded, strict=True):
            if image is None or image.shape[1:] != self._shapes[number][:2]:
                self._kept.remove(number)
                self._decoder.refused.add(self._find_key(number))
                self.run([number])
                continue
            divisor, window = self._parts[number]
            if divisor > 1:
                image, window = tensors.shrink_window(image, divisor, window), (0, 0, *window[2:])
            images.append(image)
            windows.append(window)
        if kept := [number for number in numbers if number in self._kept]:
            sides = views.shape[1:3]
            _put(views, kept, tensors.resize_windows(images, np.array(windows), sides))


def _put(views: torch.Tensor, numbers: list[int], some: torch.Tensor) -> None:
    """Writes some views of a batch."""
    views.index_copy_(0, tensors.send(np.array(numbers), views.device), some)
