"""What every form of annotated images says about itself."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from shlex import quote
from typing import NamedTuple

from darkroom.manifest.sources.evidence import Evidence
from darkroom.manifest.sources.listing import Listing


class AnnotationForm(NamedTuple):
    """A form of annotated images.

    Attributes:
        title: Its name in sentences, as in "a file of annotations of COCO".
        is_it: Tells whether a file has it, by its text.
        advice: What to do where it is not read; `{path}` is the path of the source, `{argument}`
            the same in a command, and `{folder}` its folder in one.
        mark: What the text of each of its files has: it is asked about no other. Mostly it is JSON.
        find: Returns the files of a folder by which it is known. Without it, they are those that
            `is_it` tells.
        of_file: Where the reader of a file is, as `package.module:name`: it takes the path, the
            options, and what is below the folder that the user named, if it is not the file. Empty
            for a form that is not read, or not by single files.
        of_folder: Likewise for a folder whose files belong together: it takes what is below it, and
            the options. Without it, each file that was found has a reader.
        of_names: Likewise for a file that is given as a label map: it takes the path, and returns
            the names of the classes by their numbers. Empty for a form that has none.
    """

    title: str
    is_it: Callable[[Evidence], bool]
    advice: str = "Convert these annotations: darkroom convert {argument}"
    mark: str = "{"
    find: Callable[[Listing], Iterable[str]] | None = None
    of_file: str = ""
    of_folder: str = ""
    of_names: str = ""

    def format_advice(self, path: str) -> str:
        """Returns what to do with a source."""
        parts = {"path": path, "argument": quote(path), "folder": quote(posixpath.dirname(path))}
        advice = self.advice
        for name, part in parts.items():
            advice = advice.replace(f"{{{name}}}", part)
        return advice

    def find_files(self, listing: Listing) -> list[str]:
        """Returns the files of a folder by which the form is known, relative to it.

        Raises:
            OSError: One cannot be read.
        """
        return [*(self.find(listing) if self.find else listing.find(self.is_it))]
