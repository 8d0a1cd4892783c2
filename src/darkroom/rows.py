"""From a row of a source to an entry of the manifest, or to a reject."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from darkroom import keys, labels, splits, storage
from darkroom.cells import (
    RowError,
    as_text,
    check_unicode,
    parse_integer_label,
    parse_label,
    parse_value,
)
from darkroom.errors import DataError, UsageError
from darkroom.rejects import MANIFEST_STAGE, Reject
from darkroom.schema import Schema
from darkroom.sources import Source
from darkroom.sources.base import BadRow, Row

# Everything else (http:// above all) is refused: a manifest must not make workers call hosts.
ALLOWED_SCHEMES = ("gs", "s3")
# Labels are few and repeat; those of a source where they do not must not fill memory.
_MAX_PARSED_LABELS = 65_536


@dataclass(frozen=True)
class ManifestOptions:
    """How the rows of a source become a manifest.

    Attributes:
        schema: Kind of every column; inferred from the names of the columns when None.
        labels: The label map in the order of its numbers; the labels sorted as text when None.
        split_ratios: Shares by which rows without split are spread.
        seed: Seed of the order and of the assignment to splits.
    """

    schema: Schema | None = None
    labels: tuple[str, ...] | None = None
    split_ratios: splits.SplitRatios = field(default_factory=splits.SplitRatios)
    seed: int = 0

    def __post_init__(self) -> None:
        """Checks the label map.

        Raises:
            UsageError: It is empty, repeats a label, or is given beside integer labels.
        """
        if self.labels is None:
            return
        labels.build_label_map((), self.labels)
        if self.schema is not None and self.schema.has_integer_labels:
            raise UsageError(
                "A label map was given beside integer labels, which number themselves.",
                "Drop the label map, or make the column a 'string_label'.",
            )

    def to_json(self) -> str:
        """Returns the options as JSON text, the form in which a pipeline carries them."""
        columns = None if self.schema is None else list(self.schema.columns)
        ratios = self.split_ratios.as_tuple()
        return json.dumps(
            {"schema": columns, "labels": self.labels, "split_ratios": ratios, "seed": self.seed}
        )

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
        )


class Entry(NamedTuple):
    """An example as the manifest knows it, before duplicates are dropped.

    Attributes:
        key: Its key, 32 hexadecimal digits.
        id: The text whose hash the key is.
        uri: URI of its image; empty when it has none.
        split: `train`, `eval` or `test`.
        declared: The split that the row declares; empty when it leaves it open.
        label: Its label; None when the source has none.
        row: Its number in the source.
        order: Its place in the seeded order of its split.
        size: Bytes of its image when that is known cheaply.
        mtime: Version of its image (modification time or etag) when that is known cheaply.
        extra: Its input columns by name.
    """

    key: str
    id: str
    uri: str
    split: str
    declared: str
    label: str | None
    row: int
    order: int
    size: int | None
    mtime: str | None
    extra: dict[str, Any]


def parse_rows(sources: Sequence[Source], options: ManifestOptions) -> Iterator[Entry | Reject]:
    """Yields one entry or reject for every row of the sources, numbered through from 1.

    Raises:
        DataError: A source as a whole cannot be used, as when a split is unknown, or no source
            has a row.
    """
    first_row = 0
    occurrences: Counter[str] = Counter()
    for source in sources:
        parser = _RowParser(source, options, occurrences)
        row = 0
        for item in source.rows():
            row = item.row
            yield parser.parse(item, first_row)
        first_row += row
    if not first_row:
        more = f" Nor has any of {len(sources) - 1} further files." if len(sources) > 1 else ""
        raise DataError(f"{sources[0].name} has no rows.{more}", "Give it one row an image.")


class _RowParser:
    """Parses the rows of one source.

    Args:
        source: What is read.
        options: How rows become entries.
        occurrences: How often each row without image was seen, by its content, in all sources.
    """

    def __init__(self, source: Source, options: ManifestOptions, occurrences: Counter[str]) -> None:
        self._source = source
        self._options = options
        self._occurrences = occurrences
        names = [name for name, _ in source.schema.columns]
        self._places = {name: place for place, name in enumerate(names)}
        schema = source.schema
        self._split, self._image = self._place(schema.split), self._place(schema.image)
        self._label, self._id = self._place(schema.label), self._place(schema.id)
        self._inputs = [(name, kind, self._places[name]) for name, kind in schema.inputs]
        self._base = keys.normalise_uri(source.identity_base)
        self._known_labels = frozenset(map(labels.normalise_label, options.labels or ()))
        self._parsed_labels: dict[str, str] = {}
        self._declared: dict[str, str] = {}

    def _place(self, name: str | None) -> int | None:
        return None if name is None else self._places[name]

    def parse(self, item: Row | BadRow, first_row: int) -> Entry | Reject:
        row = first_row + item.row
        values: list[Any] = item.values
        uri, identity, declared, key, extra = "", "", "", "", {}
        try:
            if values:
                declared = self._parse_split(values, item)
                uri, identity = self._parse_image(values)
                identity = self._parse_identity(values, identity, declared)
                check_unicode(identity)
                check_unicode(uri)
                key = keys.make_key(identity)
                extra = self._parse_inputs(values)
            if isinstance(item, BadRow):
                raise RowError(item.reason, item.detail)
            label = self._parse_label(values)
        except RowError as error:
            uri = uri or self._show(values, self._image) or ""
            label = self._show(values, self._label)
            extra = extra or {name: values[place] for name, _, place in self._inputs if values}
            split = self._assign(declared, key) if key else declared
            return Reject(
                row, uri, split, label, MANIFEST_STAGE, error.reason, error.detail, identity, extra
            )
        # A remote image is a request: those wait until someone needs to know.
        size, version = stat_image(uri) if uri.startswith("/") else (None, None)
        order = keys.hash_order(key, self._options.seed)
        split = self._assign(declared, key)
        return Entry(key, identity, uri, split, declared, label, row, order, size, version, extra)

    def _assign(self, declared: str, key: str) -> str:
        options = self._options
        return declared or splits.assign_split(key, options.seed, options.split_ratios)

    def _parse_split(self, values: list[Any], item: Row | BadRow) -> str:
        text = "" if self._split is None else as_text(values[self._split])
        if text not in self._declared:
            parsed = splits.parse_split(text)
            if parsed is None:
                if isinstance(item, BadRow):
                    return splits.UNASSIGNED  # the row is refused for another reason anyway
                raise self._unknown_split(text, item.row)
            self._declared[text] = parsed
        return self._declared[text]

    def _unknown_split(self, text: str, row: int) -> DataError:
        near = difflib.get_close_matches(text.lower(), ("train", "validation", "test"), n=1)
        guess = f" Did you mean {near[0].upper()}?" if near else ""
        return DataError(
            f"{self._source.name}, row {row}: unknown split {text!r}.{guess}",
            f"Known: {splits.known_names()}.",
        )

    def _parse_image(self, values: list[Any]) -> tuple[str, str]:
        """Returns the absolute URI of the image and the text that identifies it."""
        if self._image is None:
            return "", ""
        cell = storage.local_path(as_text(values[self._image]).strip())
        if not cell:
            raise RowError("no_image", "the image cell is empty")
        if keys.is_remote(cell):
            scheme = cell.partition("://")[0]
            if scheme not in ALLOWED_SCHEMES:
                raise RowError("unsupported_scheme", f"{scheme}:// is none of {ALLOWED_SCHEMES}")
        elif not cell.startswith("/"):
            if not self._base:
                # A frame has no folder: its relative paths identify its images as they stand.
                uri = keys.resolve_uri(f"{self._source.base}/{cell}")
                return uri, keys.normalise_uri(cell)
            cell = f"{self._source.base}/{cell}"
        uri = keys.resolve_uri(cell)
        return uri, keys.relative_identity(keys.normalise_uri(uri), self._base)

    def _parse_identity(self, values: list[Any], identity: str, declared: str) -> str:
        if self._id is not None and (given := as_text(values[self._id])):
            return given
        if self._image is not None:
            return identity
        cells = [declared, *map(repr, values)]
        content = keys.make_key(keys.row_identity(cells, 0))
        self._occurrences[content] += 1
        return keys.make_key(keys.row_identity(cells, self._occurrences[content]))

    def _parse_inputs(self, values: list[Any]) -> dict[str, Any]:
        return {name: parse_value(name, values[place], kind) for name, kind, place in self._inputs}

    def _parse_label(self, values: list[Any]) -> str | None:
        if self._label is None:
            return None
        text = as_text(values[self._label])
        label = self._parsed_labels.get(text)
        if label is None:
            label = parse_label(text)
            if self._source.schema.has_integer_labels:
                label = parse_integer_label(label)
            elif self._known_labels and label not in self._known_labels:
                raise RowError("unknown_label", f"the label map does not have {label!r}")
            if len(self._parsed_labels) < _MAX_PARSED_LABELS:
                self._parsed_labels[text] = label
        return label

    def _show(self, values: list[Any], place: int | None) -> str | None:
        """Returns a cell of a refused row as it stands, good or bad; None where there is none."""
        if place is None or not values:
            return None
        value = values[place]
        return "" if value is None else str(value)


def stat_image(uri: str) -> tuple[int | None, str | None]:
    """Returns size in bytes and version of an image; None for both when it cannot be had."""
    try:
        return storage.stat_file(uri)
    except (OSError, ValueError):
        return None, None  # conversion will say why


def build_label_map(found: Iterable[str], schema: Schema, given: Sequence[str] | None) -> list[str]:
    """Returns the label map of the labels found in a source.

    Integer labels number themselves, so their map runs from 0 to the largest.
    """
    if schema.has_integer_labels:
        return [str(number) for number in range(max(map(int, found), default=-1) + 1)]
    return labels.build_label_map(found, given)
