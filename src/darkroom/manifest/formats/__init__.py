"""The forms of annotated images: one module for each name of `--format`, which has its `FORMAT`.

A module is found by its name. What it loads is enough to know the form; a reader is loaded when it
is opened.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from darkroom.errors import DataError
from darkroom.manifest.formats.form import AnnotationForm
from darkroom.manifest.formats.others import JSON_ARRAY, JSON_LINES, OTHERS
from darkroom.manifest.sources.evidence import METADATA_FILES, Evidence, is_never, read_evidence
from darkroom.manifest.sources.listing import Listing
from darkroom.options.source import AUTO_FORMAT, SOURCE_FORMATS

if TYPE_CHECKING:
    from typing import TypeGuard

# Of the files of one folder with one ending, which are mostly alike.
_LOOKED_AT = 8


@cache
def load_format(name: str) -> AnnotationForm:
    """Returns the form that `--format` calls so."""
    form: AnnotationForm = import_module(f"darkroom.manifest.formats.{name}").FORMAT
    return form


def list_formats() -> list[AnnotationForm]:
    """Returns the forms that darkroom reads; of several that a source has, the first one counts."""
    return [load_format(name) for name in SOURCE_FORMATS if name != AUTO_FORMAT]


def find_form(found: Evidence) -> AnnotationForm | None:
    """Returns the form that a file has, also one that is not read; None for an unknown one."""
    forms = (form for form in (*list_formats(), *OTHERS) if form.mark in found.text)
    return next((form for form in forms if form.is_it(found)), None)


def find_known(listing: Listing) -> tuple[AnnotationForm, str] | None:
    """Returns the first form that a file below a folder has, with its path; None for none.

    Raises:
        OSError: One cannot be read.
    """
    if lists := [file for file in listing.others if file.rpartition("/")[2] in METADATA_FILES]:
        is_one_level = {file.count("/") for file in lists} == {1} and len(lists) > 1
        name = f"*/{posixpath.basename(lists[0])}" if is_one_level else lists[0]
        return load_format("hugging_face"), listing.join(name)
    found = ((find_form(listing.read_evidence(file)), file) for file in listing.list_texts())
    return next(((form, listing.join(file)) for form, file in found if _is_of_images(form)), None)


def count_untaken(listing: Listing) -> Counter[str]:
    """Counts the files of a known form that no reader has taken, by that in words.

    Raises:
        OSError: One cannot be read.
    """
    counts: Counter[str] = Counter()
    # Those that no text tells are known by their columns.
    for form in [form for form in list_formats() if form.is_it is is_never]:
        tables = {*form.find_files(listing)} - listing.taken
        counts[f"files like {form.title}"] += len(tables)
    for files in listing.group_untaken():
        forms = [find_form(listing.read_evidence(file)) for file in files[:_LOOKED_AT]]
        known = Counter(f"files like {form.title}" for form in forms if _is_of_images(form))
        for what, count in known.items():
            # All others are as those that were looked at.
            counts[what] += round(count * len(files) / len(forms))
    return counts


def _is_of_images(form: AnnotationForm | None) -> TypeGuard[AnnotationForm]:
    """Tells whether a form is one of annotations: JSON may be of anything."""
    return form not in (None, JSON_LINES, JSON_ARRAY)


@contextmanager
def name_form(path: str, *, is_jsonl: bool) -> Iterator[None]:
    """Turns the error of a list that cannot be read into one that names its form, if it is known.

    Raises:
        DataError: It cannot be read.
        OSError: The same.
    """
    try:
        yield
    except DataError as error:
        form = find_form(read_evidence(path))
        if form is None or (form is JSON_LINES and is_jsonl):
            raise
        raise DataError(f"{path} is {form.title}.", form.format_advice(path)) from error
