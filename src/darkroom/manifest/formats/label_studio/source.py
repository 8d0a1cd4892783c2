"""The JSON export of Label Studio: tasks, each with an image and with annotations of it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, unquote

from darkroom import storage
from darkroom.dataset.read_as import ReadAs
from darkroom.errors import DataError
from darkroom.images.headers import is_image_name
from darkroom.manifest.formats.base import Annotated, AnnotationSource
from darkroom.manifest.formats.json_file import JsonFile
from darkroom.manifest.formats.label_studio.regions import is_region, read_results
from darkroom.manifest.formats.places import Spelling, drop_bucket, find_images
from darkroom.manifest.sources.listing import Listing
from darkroom.options.manifest import ManifestOptions

_SAMPLE_TASKS = 100
_STORES = ("gs://", "s3://")
# Before the name of an uploaded file.
_UPLOAD_MARK = re.compile(r"^[0-9a-f]{8}-")
_LATER = "annotations left out for a later one of their task"


class LabelStudioSource(AnnotationSource):
    """Reads a JSON export of Label Studio; see `Source`.

    Of a task, the last annotation that was not skipped counts. Without one, nobody has looked.

    Raises:
        DataError: It has choices only, or its images are not found.
    """

    def __init__(self, path: str, options: ManifestOptions, listing: Listing | None = None) -> None:
        self._file = JsonFile(path)
        _check_regions(path, _list_objects([*islice(self._file.read_values(), _SAMPLE_TASKS)]))
        readers = _read_path, _read_upload
        reads = readers if options.image_dir else [*map(_keep_stores, readers)]
        self._place = find_images(path, self._read_names, options.image_dir, listing, reads)
        super().__init__(path, self._place.folder, ReadAs("an export of Label Studio"))

    def _read_names(self) -> Iterator[str]:
        tasks = (each for each in self._file.read_values() if isinstance(each, dict))
        return filter(None, map(_find_image, tasks))

    def images(self) -> Iterator[Annotated]:
        """Yields the image of each task."""
        for task in self._file.read_values():
            yield self._read_task(task if isinstance(task, dict) else {})

    def _read_task(self, task: Mapping[str, Any]) -> Annotated:
        name = _find_image(task)
        value = task.get("annotations")
        # What has another form stays, and rejects the image when it is parsed.
        if isinstance(value, list):
            done = _list_done(task)
            self.counts[_LATER] += max(0, len(done) - 1)
            value = done[-1].get("result") if done else None
            value = read_results(value, self.counts) if isinstance(value, list) else value
        return Annotated(self._place.resolve(name) if name else "", "", value)


def _list_done(task: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the annotations of a task that were not skipped, in the order of their creation."""
    annotations = _list_objects(task.get("annotations"))
    done = [each for each in annotations if not each.get("was_cancelled")]
    return sorted(done, key=lambda each: str(each.get("created_at", "")))


def _list_objects(values: Any) -> list[dict[str, Any]]:
    """Returns the objects in an array of JSON; none where it is not one."""
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


def _find_image(task: Mapping[str, Any]) -> str:
    """Returns the URL of the image of a task; empty where it has none, or several."""
    data = task.get("data")
    texts = {k: v for k, v in data.items() if isinstance(v, str)} if isinstance(data, dict) else {}
    images = [text for text in texts.values() if _is_image(text)]
    return texts.get("image") or (images[0] if len(images) == 1 else "")


def _is_image(text: str) -> bool:
    return is_image_name(_read_path(text))


def _keep_stores(spell: Spelling) -> Spelling:
    return lambda url: url if url.startswith(_STORES) else spell(url)


def _read_path(url: str) -> str:
    """Returns the path in a URL: below the folder of local files, or on the host."""
    if url.startswith("/") and storage.exists(url):
        return url
    path, _, query = drop_bucket(url).partition("?")
    return parse_qs(query).get("d", [unquote(path)])[0].lstrip("/")


def _read_upload(url: str) -> str:
    return _UPLOAD_MARK.sub("", posixpath.basename(_read_path(url)))


def _check_regions(path: str, tasks: Sequence[Mapping[str, Any]]) -> None:
    """Checks that tasks are not all of classification.

    Raises:
        DataError: They have choices, and no regions.
    """
    done = [each for task in tasks for each in _list_done(task)]
    found = [each for one in done for each in _list_objects(one.get("result"))]
    if any(each.get("type") == "choices" for each in found) and not any(map(is_region, found)):
        raise DataError(
            f"{path} is an export of Label Studio with choices, and no boxes.",
            "Export it as CSV, and name the columns: --columns "
            '\'{"image": "image", "choice": "string_label"}\' (columns= in Python).',
        )
