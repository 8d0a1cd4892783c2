"""Parses rows of a source: each becomes an entry of the manifest or a reject."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from darkroom import storage
from darkroom.dataset import keys, splits
from darkroom.dataset.rejects import MANIFEST_STAGE, OBJECT_STAGE, Reject, format_target
from darkroom.errors import DataError, RejectError
from darkroom.manifest.cells import as_text, check_form, check_unicode, parse_cell
from darkroom.manifest.sources.base import ALLOWED_SCHEMES, BadRow, Row, Source
from darkroom.manifest.sources.roots import check_inside
from darkroom.options.manifest import ManifestOptions, resolve_roots
from darkroom.runtime.text import suggest
from darkroom.storage import uris
from darkroom.targets.kind import Lost, Parsed, find_kind

# That are parsed by columns, and so few that it is not tried with a part of them.
BLOCK_ROWS, _FEW_ROWS = 512, 8
_NO_EXTRA: dict[str, Any] = {}
# Most sources repeat a few labels; where all differ, they must not fill memory.
_MAX_PARSED_LABELS = 65_536
# Eighteen digits fit into 64 bits.
_SPAN = re.compile(r"[0-9]{1,18}")
_MAX_SPANS = 10_000


class Entry(NamedTuple):
    """An example as the manifest knows it, before duplicates are dropped.

    Attributes:
        key: Its key, 32 hexadecimal digits.
        id: The text whose hash the key is.
        uri: URI of its image; empty when it has none.
        split: `train`, `eval` or `test`.
        declared: The split that the row declares; empty when the row has none.
        label: What it is labelled with; None when that is not known.
        row: Its number in the source.
        span: Its span; images of different spans never share a shard.
        order: Its place in the seeded order of its split and span.
        size: Bytes of its image when that is known cheaply.
        mtime: Version of its image (modification time or etag) when that is known cheaply.
        extra: Its input columns by name.
    """

    key: str
    id: str
    uri: str
    split: str
    declared: str
    label: Any
    row: int
    span: int
    order: int
    size: int | None
    mtime: str | None
    extra: dict[str, Any]


# Successive rows: the values of each field of `Entry`, by its name, or each row.
_Columns = dict[str, Sequence[Any]]
Part = _Columns | list[Entry | Reject]


def parse_rows(sources: Sequence[Source], options: ManifestOptions) -> Iterator[Entry | Reject]:
    """Yields one entry or reject for every row of the sources; see `parse_parts`."""
    for part in parse_parts(sources, options):
        yield from map(Entry, *part.values()) if isinstance(part, dict) else part


def parse_parts(sources: Sequence[Source], options: ManifestOptions) -> Iterator[Part]:
    """Yields the rows of the sources, numbered from 1 through all sources, in their order.

    Each part is within a block of `BLOCK_ROWS` rows.

    Raises:
        DataError: A source as a whole cannot be used, as when a split is unknown, or no source
            has a row.
        UsageError: An allowed root is not a folder.
    """
    first_row = 0
    occurrences: Counter[str] = Counter()
    for source in sources:
        source.first_row = first_row + 1
        parser = _RowParser(source, options, occurrences)
        yield from parser.parse_all(source.rows(), first_row)
        first_row += parser.num_rows
    if not first_row:
        others = len(sources) - 1
        more = f" Neither has any of the {others} other files." if others else ""
        raise DataError(f"{sources[0].name} has no rows.{more}", "Give it one row for each image.")


class _RowParser:
    """Parses the rows of one source.

    Args:
        source: The source.
        options: How rows become entries.
        occurrences: How often each row without an image was seen in all sources, by its content.
    """

    def __init__(self, source: Source, options: ManifestOptions, occurrences: Counter[str]) -> None:
        self._source = source
        self._options = options
        self._occurrences = occurrences
        names = [name for name, _ in source.schema.columns]
        self._places = {name: place for place, name in enumerate(names)}
        schema = source.schema
        self._split, self._image = self._place(schema.split), self._place(schema.image)
        self._id, self._span = self._place(schema.id), self._place(schema.span)
        self._targets = [self._places[name] for name in schema.targets]
        # The only cell of most targets is text, and its value is looked up.
        self._target = self._targets[0] if len(self._targets) == 1 else None
        self._kind = find_kind(schema.target_kind)
        self._form = replace(options.find_form(schema), has_types=source.has_types)
        self._inputs = [(name, kind, self._places[name]) for name, kind in schema.inputs]
        self._base = uris.normalise_uri(source.identity_base)
        # The folder of relative paths, as identities have it. A DataFrame has none.
        folder = uris.normalise_uri(source.base)
        self._below = uris.relative_identity(f"{folder}/", self._base) if self._base else ""
        self._allowed_roots = resolve_roots(options.allowed_roots)
        self._prefix = None if options.allowed_roots else _find_plain_prefix(source)
        self._parsed: dict[str, Any] = {}
        self._declared: dict[str, str] = {} if schema.split else {"": source.split}
        self._spans: dict[Any, int] = {} if schema.span else {"": source.span}
        self.num_rows = 0
        self._hash_order = keys.make_order_hash(options.seed)

    def _place(self, name: str | None) -> int | None:
        return None if name is None else self._places[name]

    def parse_all(self, items: Iterable[Row | BadRow], first_row: int) -> Iterator[Part]:
        """Yields the rows of the source; earlier sources have `first_row` rows."""
        items = iter(items)
        while block := [*islice(items, BLOCK_ROWS - (first_row + self.num_rows) % BLOCK_ROWS)]:
            yield from self._parse_block(block, first_row)
            self.num_rows = block[-1].row

    def _parse_block(self, items: Sequence[Row | BadRow], first_row: int) -> Iterator[Part]:
        """Yields successive rows, by halves where not all of them are common."""
        if parts := self._parse_plain(items, first_row):
            yield from parts
        elif len(items) <= _FEW_ROWS or self._prefix is None:
            yield [each for item in items for each in self._parse_any(item, first_row)]
        else:
            half = len(items) // 2
            yield from self._parse_block(items[:half], first_row)
            yield from self._parse_block(items[half:], first_row)

    def _parse_plain(self, items: Sequence[Row | BadRow], first_row: int) -> list[Part]:
        """Parses common rows in a fifth of the time of `_parse_any`; nothing if one is not common.

        A common row has an image with a plain path, a split, a span and a label that were seen
        before, or objects, and no declared id. `_parse_any` returns the same entry for it.
        """
        if self._prefix is None or BadRow in map(type, items):
            return []
        paths: list[Any] = [item.values[self._image] for item in items]  # type: ignore[index]
        if not uris.are_plain_paths(paths):
            return []
        numbers, values = zip(*items, strict=True)
        cells, nothing = [*zip(*values, strict=True)], [None] * len(items)
        declared = self._look_up(self._declared, cells, self._split)
        spans = self._look_up(self._spans, cells, self._span)
        if None in declared or None in spans:
            return []
        try:
            extra = [*map(self._parse_inputs, values)] if self._inputs else [_NO_EXTRA] * len(items)
        except RejectError:
            return []
        # Last, because objects take longest, and are parsed again where a cell is not common.
        labels, lost = self._parse_plain_labels(cells)
        if labels is None:
            return []
        *texts, orders = self._identify(paths, declared)
        rows = [first_row + number for number in numbers]
        fields = *texts, declared, labels, rows, spans, orders, nothing, nothing, extra
        columns: _Columns = dict(zip(Entry._fields, fields, strict=True))
        rejects: list[Entry | Reject] = []
        for place, found in lost.items():
            entry = Entry(*(column[place] for column in columns.values()))
            rejects += _list_lost(entry, found)
        return [columns, rejects] if rejects else [columns]

    def _parse_plain_labels(
        self, cells: Sequence[Sequence[Any]]
    ) -> tuple[Sequence[Any] | None, dict[int, Sequence[Lost]]]:
        """Returns what rows are labelled with, and the lost objects of some, by their places.

        None if one of them is not common.
        """
        if not self._targets:
            return [None] * len(cells[0]), {}
        if self._kind.objects is None:
            labels = self._look_up(self._parsed, cells, self._target)
            return None if None in labels else labels, {}
        try:
            found = [self._kind.parse([cell], self._form) for cell in cells[self._targets[0]]]
        except RejectError:
            return None, {}
        lost = {place: each.lost for place, each in enumerate(found) if each.lost}
        return [each.value for each in found], lost

    def _identify(self, paths: list[Any], declared: list[Any]) -> tuple[list[Any], ...]:
        """Returns keys, ids, URIs, splits and places in the order of rows with plain paths."""
        # As `relative_identity`: without a base, an absolute path stays whole.
        base, below = f"{self._base}/" if self._base else "", self._below
        ids = [path.removeprefix(base) if path[0] == "/" else below + path for path in paths]
        found = [path if path[0] == "/" else f"{self._prefix}{path}" for path in paths]
        made = [*map(keys.make_key, ids)]
        split = [*map(self._assign, declared, made)]
        return made, ids, found, split, [*map(self._hash_order, made)]

    def _look_up(
        self, known: dict[Any, Any], cells: Sequence[Sequence[Any]], place: int | None
    ) -> list[Any]:
        """Returns what is known of the cells of a column; None for others. It may be absent."""
        if place is None:
            return [known.get("")] * len(cells[0])
        # 1 is equal to true.
        return [known.get(cell) if type(cell) in (str, int) else None for cell in cells[place]]

    def _parse_any(self, item: Row | BadRow, first_row: int) -> Iterator[Entry | Reject]:
        """Parses any row, also one that its source could not read completely.

        Rejects of objects follow the entry of their image.

        The cells that identify an image come first, so that a reject has its id and split where a
        later cell is bad. `values` is empty if the source could read no cells.
        """
        row = first_row + item.row
        values: list[Any] = item.values
        uri, identity, declared, key, extra = "", "", "", "", {}
        span = self._source.span
        try:
            if values:
                declared = self._parse_split(values, item)
                uri, identity = self._parse_image(values)
                identity = self._parse_identity(values, identity, declared)
                check_unicode(identity)
                check_unicode(uri)
                key = keys.make_key(identity)
                extra = self._parse_inputs(values)
                span = self._parse_span(values)
            if isinstance(item, BadRow):
                raise RejectError(item.reason, item.detail)
            label, lost = self._parse_label(values)
        except RejectError as error:
            if values:
                # A corrected row belongs to its span, whichever cell of it was bad.
                with suppress(RejectError):
                    span = self._parse_span(values)
            uri = uri or self._show(values, self._image) or ""
            label = self._show(values, self._place(self._source.schema.label))
            extra = extra or {name: values[place] for name, _, place in self._inputs if values}
            extra |= self._keep_targets(values)
            split = self._assign(declared, key) if key else declared
            reason = error.reason, error.detail
            yield Reject(row, uri, split, label, MANIFEST_STAGE, *reason, identity, extra, span)
            return
        split = self._assign(declared, key)
        order = self._hash_order(key)
        place = row, span, order
        entry = Entry(key, identity, uri, split, declared, label, *place, None, None, extra)
        yield entry
        yield from _list_lost(entry, lost)

    def _assign(self, declared: str, key: str) -> str:
        options = self._options
        return declared or splits.assign_split(key, options.seed, options.ratios)

    def _parse_split(self, values: list[Any], item: Row | BadRow) -> str:
        """Returns the split that a row declares; empty if it declares none.

        An unknown split is an error of the whole source. Known ones are kept in `_declared`, where
        `_parse_plain` finds them.
        """
        text = "" if self._split is None else as_text(values[self._split])
        if text not in self._declared:
            parsed = splits.parse_split(text)
            if parsed is None:
                if isinstance(item, BadRow):
                    return splits.UNASSIGNED  # the row is rejected for another reason anyway
                guess = suggest(text.upper(), ("TRAIN", "VALIDATION", "TEST"))
                where = f"{self._source.name}, row {item.row}"
                raise DataError(
                    f"{where}: unknown split {text!r}. {guess}".rstrip(),
                    f"Known: {splits.known_names()}.",
                )
            self._declared[text] = parsed
        return self._declared[text]

    def _parse_span(self, values: list[Any]) -> int:
        """Returns the span of a row, which is that of its file if no column has it.

        It is kept in `_spans`, where `_parse_plain` finds it.
        """
        if self._span is None:
            return self._source.span
        cell = values[self._span]
        text = as_text(cell).strip()
        if not _SPAN.fullmatch(text):
            raise RejectError("bad_value", f"the span is {text!r:.80}, expected a whole number")
        span = self._spans[cell] = int(text)
        if len(self._spans) > _MAX_SPANS:
            raise DataError(
                f"The column {self._source.schema.span} has more than {_MAX_SPANS:,} spans.",
                "Each has a shard or more. Name a column with few values, as the month.",
            )
        return span

    def _parse_image(self, values: list[Any]) -> tuple[str, str]:
        """Returns the absolute URI of the image and the text that identifies it."""
        if self._image is None:
            return "", ""
        text = as_text(values[self._image])
        # The spaces that pad the columns of a CSV belong to no name.
        cell = storage.local_path(text if self._source.has_types else text.rstrip())
        if not cell.strip():
            raise RejectError("no_image", "the image cell is empty")
        if len(cell) > uris.MAX_PATH_CHARACTERS:
            detail = f"the image cell has {len(cell):,} characters, which no path has: {cell:.40}…"
            raise RejectError("bad_value", detail)
        if uris.has_scheme(cell):
            scheme = cell.partition("://")[0]
            if scheme not in ALLOWED_SCHEMES:
                detail = f"{scheme}:// is not one of {ALLOWED_SCHEMES}"
                raise RejectError("unsupported_scheme", detail)
        is_relative = not cell.startswith("/") and not uris.has_scheme(cell)
        uri = uris.resolve_uri(f"{self._source.base}/{cell}" if is_relative else cell)
        check_form(cell, uri)
        check_inside(uri, self._allowed_roots)
        # A DataFrame has no folder, so a relative path identifies an image as it is written.
        if is_relative and not self._base:
            return uri, uris.normalise_uri(cell)
        return uri, uris.relative_identity(uris.normalise_uri(uri), self._base)

    def _parse_identity(self, values: list[Any], identity: str, declared: str) -> str:
        """Returns the text whose hash is the key: the declared id, or else that of the image.

        Without an image, it is a hash of all cells and of how often they occurred until here.
        """
        if self._id is not None and (given := as_text(values[self._id])):
            return given
        if self._image is not None:
            return identity
        cells = [declared, *map(repr, values)]
        content = keys.make_key(keys.row_identity(cells, 0))
        self._occurrences[content] += 1
        return keys.make_key(keys.row_identity(cells, self._occurrences[content]))

    def _parse_inputs(self, values: list[Any]) -> dict[str, Any]:
        return {name: parse_cell(name, values[place], kind) for name, kind, place in self._inputs}

    def _parse_label(self, values: list[Any]) -> Parsed:
        """Returns what a row is labelled with, as its kind of target parses it.

        The label of a text is kept in `_parsed`, where `_parse_plain` finds it.
        """
        if not self._targets:
            return Parsed(None)
        cells = [values[place] for place in self._targets]
        if not isinstance(cells[0], list | dict):
            cells = [as_text(cell) for cell in cells]
        if self._target is None or not isinstance(cells[0], str):
            return self._kind.parse(cells, self._form)
        if (text := cells[0]) in self._parsed:
            return Parsed(self._parsed[text])
        parsed = self._kind.parse(cells, self._form)
        if len(self._parsed) < _MAX_PARSED_LABELS and not parsed.lost:
            self._parsed[text] = parsed.value
        return parsed

    def _keep_targets(self, values: list[Any]) -> dict[str, Any]:
        """Returns the cells of a rejected row that are not its label but say what it shows."""
        names = [n for n in self._source.schema.targets if n != self._source.schema.label]
        return {name: values[self._places[name]] for name in names if values}

    def _show(self, values: list[Any], place: int | None) -> str | None:
        """Returns a cell of a rejected row as it was given; None if it has none."""
        if place is None or not values:
            return None
        value = values[place]
        has_parts = isinstance(value, list | dict)
        return "" if value is None else format_target(value) if has_parts else str(value)


def _list_lost(entry: Entry, lost: Iterable[Lost]) -> Iterator[Reject]:
    """Yields the rejects of the lost objects of a row."""
    for each in lost:
        said, why = format_target(each.value), (OBJECT_STAGE, each.reason, each.detail)
        place = entry.id, entry.extra, entry.span
        yield Reject(entry.row, entry.uri, entry.split, said, *why, *place)


def _find_plain_prefix(source: Source) -> str | None:
    """Returns what to put before a plain path to get a URI; None if no path can be plain."""
    schema, base = source.schema, source.base
    is_plain = base.startswith("/") and base != "/" and uris.resolve_uri(base) == base
    return f"{base}/" if is_plain and schema.image and not schema.id else None
