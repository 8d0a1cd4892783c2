"""How the rows of a source become a manifest."""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from darkroom import storage
from darkroom.dataset import labels, splits
from darkroom.dataset.schema import Schema
from darkroom.dataset.splits import SplitRatios
from darkroom.errors import UsageError

DEFAULT_ENCODING = "utf-8"


@dataclass(frozen=True)
class ManifestOptions:
    """How the rows of a source become a manifest.

    Attributes:
        schema: Kind of every column; inferred from the names of the columns when None.
        labels: The label map in the order of its numbers; the labels sorted as text when None.
        split_ratios: Shares by which rows without split are spread.
        seed: Seed of the order and of the assignment to splits.
        encoding: How a CSV or JSONL file is encoded.
        allowed_roots: Folders below which all images must lie, as absolute paths; links are
            followed where the rows are read. None allows every place.
        exclude: Path of a list of images to leave out; see `darkroom.manifest.exclusions`.
        label_map: Path of a file with the labels, one a line, which is read together with the
            source; instead of `labels`.
    """

    schema: Schema | None = None
    labels: tuple[str, ...] | None = None
    split_ratios: splits.SplitRatios = field(default_factory=splits.SplitRatios)
    seed: int = 0
    encoding: str = DEFAULT_ENCODING
    allowed_roots: tuple[str, ...] = ()
    exclude: str | None = None
    label_map: str | None = None

    def __post_init__(self) -> None:
        """Checks the label map.

        Raises:
            UsageError: It is empty, repeats a label, or is given beside integer labels.
        """
        if self.labels is not None:
            labels.build_label_map((), self.labels)
        is_given = self.labels is not None or self.label_map is not None
        if is_given and self.schema is not None and self.schema.has_integer_labels:
            raise UsageError(
                "A label map was given beside integer labels, which number themselves.",
                "Drop the label map, or make the column a 'string_label'.",
            )

    @classmethod
    def parse(
        cls,
        *,
        schema: Schema | Mapping[str, Any] | str | None = None,
        label_map: Sequence[str] | str | os.PathLike[str] | None = None,
        split_ratios: SplitRatios | str | None = None,
        seed: int = 0,
        source_encoding: str = DEFAULT_ENCODING,
        allowed_roots: Sequence[str | os.PathLike[str]] = (),
        exclude: str | os.PathLike[str] | None = None,
    ) -> ManifestOptions:
        """Makes options from what users give; see `darkroom.convert` for each.

        Raises:
            UsageError: An argument is wrong.
        """
        if not isinstance(seed, int):
            raise UsageError(f"seed must be a whole number, got {seed!r}.")
        return cls(
            schema=None if schema is None else Schema.parse(schema),
            labels=_parse_label_map(label_map),
            split_ratios=_parse_split_ratios(split_ratios),
            seed=seed,
            encoding=parse_encoding(source_encoding),
            allowed_roots=resolve_roots(allowed_roots),
            exclude=None if exclude is None else storage.absolute(exclude),
        )

    def with_labels(self) -> ManifestOptions:
        """Returns the options with the labels that are in the file `label_map` now.

        Raises:
            DataError: The file is not UTF-8 text.
            StorageError: It cannot be read.
            UsageError: It is not a label map.
        """
        if self.label_map is None:
            return self
        return replace(self, labels=tuple(labels.read_labels(self.label_map)), label_map=None)

    def to_json(self) -> str:
        """Returns the options as JSON text, the form in which a pipeline carries them."""
        columns = None if self.schema is None else list(self.schema.columns)
        ratios = self.split_ratios.as_tuple()
        values = {
            "schema": columns,
            "labels": self.labels,
            "split_ratios": ratios,
            "seed": self.seed,
            "encoding": self.encoding,
            "allowed_roots": self.allowed_roots,
            "exclude": self.exclude,
        }
        # Only where there is one: files that were compiled before keep their place in caches.
        if self.label_map is not None:
            values["label_map"] = self.label_map
        return json.dumps(values)

    @classmethod
    def from_json(cls, text: str) -> ManifestOptions:
        """Returns the options that `to_json` wrote."""
        values = json.loads(text)
        columns, label_map = values["schema"], values["labels"]
        return cls(
            schema=None if columns is None else Schema.parse(dict(columns)),
            labels=None if label_map is None else tuple(label_map),
            split_ratios=splits.SplitRatios(*values["split_ratios"]),
            seed=values["seed"],
            encoding=values.get("encoding", DEFAULT_ENCODING),
            allowed_roots=tuple(values.get("allowed_roots", ())),
            exclude=values.get("exclude"),
            label_map=values.get("label_map"),
        )


def _parse_label_map(given: Any) -> tuple[str, ...] | None:
    if isinstance(given, str | os.PathLike):
        given = labels.read_labels(os.fspath(given))
    if given is None:
        return None
    if not isinstance(given, Sequence) or not all(isinstance(label, str) for label in given):
        raise UsageError(f"label_map must be a list of labels or a path, got {given!r:.80}.")
    return tuple(given)


def _parse_split_ratios(given: Any) -> SplitRatios:
    if isinstance(given, str):
        return SplitRatios.parse(given)
    if given is not None and not isinstance(given, SplitRatios):
        raise UsageError(f"split_ratios must be text like '80/10/10', got {given!r:.80}.")
    return given or SplitRatios()


def resolve_roots(roots: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Returns folders as `check_inside` takes them: absolute, without links.

    Raises:
        UsageError: A local one is no folder.
    """
    resolved = []
    for root in roots:
        path = storage.absolute(root)
        if not storage.is_remote(path):
            path = os.path.realpath(path)
            if not os.path.isdir(path):
                raise UsageError(
                    f"The allowed root {path} is no folder.", "Name a folder that is there."
                )
        resolved.append(path)
    return tuple(resolved)


def parse_encoding(name: str) -> str:
    """Returns the name of an encoding as Python spells it.

    Raises:
        UsageError: There is no such encoding of text.
    """
    try:
        "".encode(name)
        return codecs.lookup(name).name
    except (LookupError, TypeError, ValueError):
        raise UsageError(
            f"There is no encoding {name!r}.", "Known are utf-8, utf-16, windows-1252 and the like."
        ) from None
