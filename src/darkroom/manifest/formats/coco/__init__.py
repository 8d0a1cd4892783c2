"""COCO: files of JSON with images, categories and annotations.

A folder has one or several of them, under any names: of Roboflow (`train/_annotations.coco.json`),
of FiftyOne (`labels.json`), of CVAT (`annotations/instances_default.json`), or of COCO
(`annotations/instances_train2017.json`).
"""

from __future__ import annotations

import re

from darkroom.manifest.formats.form import AnnotationForm
from darkroom.manifest.sources.evidence import Evidence
from darkroom.manifest.sources.listing import Listing

_OBJECT_LIST = re.compile(r'"(\w+)"\s*:\s*\[\s*[{\]]')
# Of annotations without boxes, and of those of parts of a body, which repeat the boxes of others.
_OTHER_KINDS = ("caption", "segments_info", "keypoints")


def _is_coco(found: Evidence) -> bool:
    # A large file has its images anywhere, so its objects tell it, too.
    lists = {*_OBJECT_LIST.findall(found.text)}
    has_more = not lists.isdisjoint(("annotations", "categories")) or "file_name" in found.keys
    is_object = {"image_id", "category_id"} <= found.keys
    has_boxes = not found.keys.isdisjoint(("bbox", "segmentation"))
    return ("images" in lists and has_more) or (is_object and has_boxes)


def _is_of_instances(found: Evidence) -> bool:
    # Results of a model are an array, and a list of images to be annotated has no objects.
    is_annotated = not found.keys.isdisjoint(("annotations", "image_id"))
    is_array = found.text.lstrip().startswith("[")
    return is_annotated and not is_array and found.keys.isdisjoint(_OTHER_KINDS)


def _find(listing: Listing) -> list[str]:
    """Returns the files of instances in a folder; if there are none, all of COCO."""
    files = [*listing.find(FORMAT.is_it)]
    return [file for file in files if _is_of_instances(listing.read_evidence(file))] or files


FORMAT = AnnotationForm(
    "a file of annotations of COCO",
    _is_coco,
    find=_find,
    of_file=f"{__name__}.source:CocoSource",
    of_names=f"{__name__}.source:read_names",
)
