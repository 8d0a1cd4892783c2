"""Splits that the names of files and folders tell, as `train2017` and `valid`."""

from __future__ import annotations

import posixpath
import re

from darkroom.dataset.splits import parse_split

_YEAR = re.compile(r"\d*$")
_PARTS = re.compile(r"[_.\- ]")


def parse_split_name(name: str) -> str:
    """Returns the split that a name means, which may end with a year; empty for none."""
    return parse_split(_YEAR.sub("", name)) or ""


def find_split(path: str) -> str:
    """Returns the split that the first folder of a path tells; empty for none."""
    return next(filter(None, map(parse_split_name, path.split("/")[:-1])), "")


def find_split_name(path: str) -> str:
    """Returns the part of the name of a file, or its folder, that names a split; empty for none.

    It is `train2017` of `annotations/instances_train2017.json`, and `valid` of
    `valid/_annotations.coco.json`.
    """
    folder, name = posixpath.split(path)
    parts = [*_PARTS.split(posixpath.splitext(name)[0]), posixpath.basename(folder)]
    return next(filter(parse_split_name, parts), "")
