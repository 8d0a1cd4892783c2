"""The gallery of a dataset, as a file of its own or served: `darkroom gallery`."""

from __future__ import annotations

import os
from dataclasses import dataclass

from darkroom import storage
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.dataset.opening import check_outside
from darkroom.runtime import progress
from darkroom.runtime.markup import Html, element, escape_page
from darkroom.runtime.result import Outcome, Result
from darkroom.runtime.text import format_count
from darkroom.storage import ledger
from darkroom.validation.gallery.encode import encode_gallery
from darkroom.validation.gallery.predictions import find_predictions
from darkroom.validation.gallery.serve import GalleryServer
from darkroom.validation.report.pictures import RecordFolders
from darkroom.validation.report.write import GALLERY_FILE
from darkroom.validation.validate import ValidationResult, validate

# A notebook keeps the page in itself.
_MAX_SHOWN_BYTES = 8 << 20


@dataclass(frozen=True)
class Gallery(Result):
    """The page that `write_gallery` wrote.

    Attributes:
        path: The page.
        bytes: Its length.
        images: Number of the images of the dataset.
        findings: Number of the findings to look at.
    """

    path: str
    bytes: int
    images: int
    findings: int

    def _repr_html_(self) -> str:
        """Returns it as a notebook shows it: with the page itself, which is read for that."""
        frame = _make_frame(self.path) if self.bytes <= _MAX_SHOWN_BYTES else None
        return self.describe()._replace(more=[frame]).to_card()

    def describe(self) -> Outcome:
        """Returns what was written."""
        findings, images = format_count(self.findings, "finding"), f"{self.images:,} images"
        said = f"{findings}, {images}: {self.bytes / 1e6:.1f} MB"
        return Outcome("Gallery", [said, f"Open it in a browser: {self.path}"])


def _make_frame(path: str) -> Html | None:
    """Returns the page in a frame of its own, which sees nothing of the notebook."""
    try:
        text = storage.read_bytes(path, _MAX_SHOWN_BYTES).decode()
    except (OSError, ValueError):
        return None
    style = "width:100%;height:720px;border:1px solid #8886;margin-top:8px"
    return element(
        "iframe", srcdoc=escape_page(text), sandbox="allow-scripts", style=style, title="Gallery"
    )


@storage.report_failures
@progress.shown
def write_gallery(
    directory: str | os.PathLike[str],
    output: str | os.PathLike[str] = GALLERY_FILE,
    *,
    predictions: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Gallery:
    """Checks a dataset, and writes its findings and images as one page to look through.

    Args:
        directory: A dataset; local or remote.
        output: The page, outside of the dataset.
        predictions: What a model says of the images: the file of `darkroom predict`.
        overwrite: Whether a file that exists is replaced.

    Raises:
        DataError: The folder is not a dataset, or it is damaged; or the predictions are of others.
        UsageError: There are predictions, and images do not have one label.
        OutputError: `output` exists and may not be replaced, is a folder, or in the dataset.
        OSError: Something cannot be read or written.
    """
    path = storage.absolute(output)
    ledger.check_output_file(path, overwrite=overwrite)
    if predictions is not None:
        find_predictions(predictions)  # The checks take a while.
    result = validate(directory)
    check_outside(result.directory, path, "The gallery")
    with progress.step("Gallery"):
        page = _encode(result, predictions)
        storage.write_bytes(path, page)
    return Gallery(path, len(page), result.report.written, len(result.findings))


@storage.report_failures
@progress.shown
def open_gallery(
    directory: str | os.PathLike[str], *, predictions: str | os.PathLike[str] | None = None
) -> GalleryServer:
    """Checks a dataset, and opens its gallery to browsers of this machine.

    Args:
        directory: A dataset; local or remote.
        predictions: What a model says of the images: the file of `darkroom predict`.

    Returns:
        The server, to be closed, as by `with`. It answers while its `serve_forever` runs.

    Raises:
        DataError: The folder is not a dataset, or it is damaged; or the predictions are of others.
        UsageError: There are predictions, and images do not have one label.
        OSError: Something cannot be read, or no port can be opened.
    """
    if predictions is not None:
        find_predictions(predictions)
    result = validate(directory)
    server = GalleryServer(read_dataset(result.directory).fingerprint)
    with progress.step("Gallery"):
        try:
            server.page = _encode(result, predictions, server)
        except BaseException:
            server.server_close()
            raise
    return server


def _encode(
    result: ValidationResult,
    predictions: str | os.PathLike[str] | None,
    server: GalleryServer | None = None,
) -> bytes:
    records = RecordFolders(result.directory, storage.join(result.directory, INDEX_FOLDER))
    return encode_gallery(result.report, records, predictions, server=server).encode()
