"""Parses rows of a source, block by block: each becomes a row of columns, or a reject."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import Any, NamedTuple

import pyarrow as pa

from darkroom import storage
from darkroom.dataset import keys, splits
from darkroom.dataset.rejects import MANIFEST_STAGE, OBJECT_STAGE, Reject, format_target
from darkroom.errors import DataError, RejectError
from darkroom.manifest.cells import check_form, check_unicode, parse_cell
from darkroom.manifest.sources.base import ALLOWED_SCHEMES, Row, Source
from darkroom.manifest.sources.roots import check_inside
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime.text import suggest
from darkroom.storage import uris
from darkroom.targets.form import as_text
from darkroom.targets.kind import Lost, find_kind, recall

BLOCK_ROWS = 512
# Eighteen digits fit into 64 bits.
_SPAN = re.compile(r"[0-9]{1,18}")
_MAX_SPANS = 10_000


class Chunk(NamedTuple):
    """Successive rows of a source.

    Attributes:
        columns: The rows that can be used, as columns; see `COLUMNS`.
        rejects: The rejected rows, and the rejected objects of others, in the order of rows.
    """

    columns: dict[str, Any]
    rejects: list[Reject]

    @property
    def num_rows(self) -> int:
        """Rows of both kinds."""
        return len(self.columns["key"]) + sum(each.stage != OBJECT_STAGE for each in self.rejects)


# The columns of rows, as the manifest knows them before duplicates are dropped, with their types.
# Those of the label and of the input columns are not the same for all sources.
COLUMNS: dict[str, pa.DataType | None] = {
    "key": pa.string(),  # of the example, 32 hexadecimal digits
    "id": pa.string(),  # the text whose hash the key is
    "uri": pa.string(),  # URI of the image; empty when there is none
    "split": pa.string(),  # `train`, `eval` or `test`
    "declared": pa.string(),  # the split that the row declares; empty when it declares none
    "label": None,  # what it is labelled with, as its kind of target gives it
    "row": pa.int64(),  # the number in the source
    "span": pa.int64(),  # images of different spans never share a shard
    "order": pa.int64(),  # the place in the seeded order of split and span
    "size": pa.int64(),  # bytes of the image, when that is known cheaply
    "mtime": pa.string(),  # version of the image (modification time or etag), likewise
    "extra": None,  # the input columns by name
}


def parse_blocks(sources: Sequence[Source], options: ManifestOptions) -> Iterator[Chunk]:
    """Yields the rows of the sources, numbered from 1 through all sources, in their order.

    Each chunk is within a block of `BLOCK_ROWS` rows. The options must be resolved.

    Raises:
        DataError: A source as a whole cannot be used, as when a split is unknown, or no source
            has a row.
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


class _Block:
    """Successive rows, of which one column is read after the other.

    Args:
        items: The rows.
        width: Number of their cells.

    Attributes:
        cells: The cells of each column of the source.
        found: What was read, by its name: a value for each row, None where it has a fault.
        faults: Why rows cannot be used, by their places. The first reason counts.
    """

    def __init__(self, items: Sequence[Row], width: int) -> None:
        self.items = items
        self.cells = [*zip(*(item.values or [None] * width for item in items), strict=True)]
        self.found: dict[str, list[Any]] = {}
        self._told = {place: item.fault for place, item in enumerate(items) if item.fault}
        self.faults = {place: each for place, each in self._told.items() if not items[place].values}

    def add_told(self) -> None:
        """Adds the faults that the source tells of rows, some cells of which are known."""
        self.faults = {**self._told, **self.faults}

    def list_good(self) -> Sequence[int]:
        """Returns the places of the rows without a fault."""
        places = range(len(self.items))
        return [each for each in places if each not in self.faults] if self.faults else places

    def read(
        self,
        name: str,
        parse: Callable[..., Any],
        known: Mapping[Any, Any],
        column: int | None = None,
        given: Sequence[str] = (),
    ) -> None:
        """Reads what rows say.

        Args:
            name: Its name in `found`.
            parse: Returns it for a row where it is not known; a `RejectError` is a fault.
            known: What is known of cells.
            column: The number of their column; None: what is known of the empty text.
            given: The names of what was found before, which `parse` takes, too.
        """
        cells = [""] * len(self.items) if column is None else self.cells[column]
        found = recall(known, cells)
        for place in self.faults:
            found[place] = None
        if None in found:
            for place in self.list_good():
                if found[place] is None:
                    try:
                        more = [self.found[each][place] for each in given]
                        found[place] = parse(self.items[place], *more)
                    except RejectError as error:
                        self.faults[place] = error
        self.found[name] = found


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
        self._label = self._place(schema.label)
        self._kind = find_kind(schema.target_kind)
        self._form = replace(options.find_form(schema), has_types=source.has_types)
        self._inputs = [(name, kind, self._places[name]) for name, kind in schema.inputs]
        self._base = uris.normalise_uri(source.identity_base)
        # The folder of relative paths, as identities have it. A DataFrame has none.
        folder = uris.normalise_uri(source.base)
        self._below = uris.relative_identity(f"{folder}/", self._base) if self._base else ""
        self._prefix = None if options.allowed_roots else _find_plain_prefix(source.base)
        self._declared: dict[str, str] = {} if schema.split else {"": source.split}
        self._spans: dict[Any, int] = {} if schema.span else {"": source.span}
        self.num_rows = 0
        self._hash_order = keys.make_order_hash(options.seed)

    def _place(self, name: str | None) -> int | None:
        return None if name is None else self._places[name]

    def parse_all(self, items: Iterable[Row], first_row: int) -> Iterator[Chunk]:
        """Yields the rows of the source; earlier sources have `first_row` rows."""
        items = iter(items)
        while block := [*islice(items, BLOCK_ROWS - (first_row + self.num_rows) % BLOCK_ROWS)]:
            yield self._parse_block(_Block(block, len(self._places)), first_row)
            self.num_rows = block[-1].row

    def _parse_block(self, block: _Block, first_row: int) -> Chunk:
        """Parses successive rows; the rejects of objects follow those of their row.

        The cells that identify an image come first, so that a reject has its id and split where a
        later cell is bad.
        """
        block.read("declared", self._parse_split, self._declared, self._split)
        block.read("image", self._parse_image, self._find_plain(block), self._image)
        self._identify(block)
        block.read("extra", self._parse_inputs, {} if self._inputs else {"": {}})
        block.read("span", self._parse_span, self._spans, self._span)
        block.add_told()
        labels, lost = self._parse_labels(block)
        good = block.list_good()
        names = "key", "id", "image", "declared", "span", "extra"
        made, ids, images, declared, spans, extra = (
            _take(block.found[name], good) for name in names
        )
        rows = [first_row + item.row for item in _take(block.items, good)]
        split = [*map(self._assign, declared, made)]
        orders, nothing = [*map(self._hash_order, made)], [None] * len(good)
        found = [uri for uri, _ in images]
        texts = made, ids, found, split, declared
        fields = *texts, labels, rows, spans, orders, nothing, nothing, extra
        rejects = [
            each
            for place in sorted({*block.faults, *lost})
            for each in self._list_rejects(block, place, lost.get(place, ()), first_row)
        ]
        return Chunk(dict(zip(COLUMNS, fields, strict=True)), rejects)

    def _identify(self, block: _Block) -> None:
        """Finds ids and keys of rows; of most at once, as work that is done row by row adds up."""
        images = block.found["image"]
        if self._id is None and self._image is not None:
            block.found["id"] = ids = [each and each[1] for each in images]
            if not block.faults and all(map(str.isascii, chain.from_iterable(images))):
                block.found["key"] = [*map(keys.make_key, ids)]
                return
        else:
            block.read("id", self._parse_identity, {}, given=("declared", "image"))
        block.read("key", _make_key, {}, given=("id", "image"))

    def _parse_labels(self, block: _Block) -> tuple[Any, dict[int, Sequence[Lost]]]:
        """Returns what good rows are labelled with, and the lost objects of rows by their places.

        Rows without such a target get a fault.
        """
        good = block.list_good()
        if not (targets := self._source.schema.targets):
            return [None] * len(good), {}
        columns = [_take(block.cells[self._places[name]], good) for name in targets]
        parsed = self._kind.parse(columns, self._form)
        block.faults.update((good[place], each) for place, each in parsed.faults.items())
        return parsed.values, {good[place]: each for place, each in parsed.lost.items()}

    def _find_plain(self, block: _Block) -> dict[str, tuple[str, str]]:
        """Returns URI and identity by paths, as `_parse_image` does in five times the time."""
        if self._image is None:
            return {"": ("", "")}
        paths: Sequence[Any] = block.cells[self._image] if self._prefix else ()
        if paths and not uris.are_plain_paths(paths):
            paths = [path for path in paths if uris.are_plain_paths([path])]
        # As `relative_identity`: without a base, an absolute path stays whole.
        base, below = f"{self._base}/" if self._base else "", self._below
        return {
            path: (path, path.removeprefix(base))
            if path[0] == "/"
            else (f"{self._prefix}{path}", below + path)
            for path in paths
        }

    def _list_rejects(
        self, block: _Block, place: int, lost: Sequence[Lost], first_row: int
    ) -> Iterator[Reject]:
        """Yields the reject of a row, or those of its lost objects."""
        found = {name: values[place] for name, values in block.found.items()}
        item = block.items[place]
        row, (uri, identity) = first_row + item.row, found["image"] or ("", "")
        identity, key, declared = found["id"] or identity, found["key"], found["declared"] or ""
        split = self._assign(declared, key) if key else declared
        extra, span = found["extra"], found["span"]
        for each in lost:
            fault = each.fault
            why = format_target(each.value), OBJECT_STAGE, fault.reason, fault.detail
            yield Reject(row, uri, split, *why, identity, extra, span)
        if error := block.faults.get(place):
            uri, extra = uri or self._show(item, self._image) or "", self._keep_cells(item, extra)
            span = self._source.span if span is None else span
            if item.values:
                # A corrected row belongs to its span, whichever cell of it was bad.
                with suppress(RejectError):
                    span = self._parse_span(item)
            why = self._show(item, self._label), MANIFEST_STAGE, error.reason, error.detail
            yield Reject(row, uri, split, *why, identity, extra, span)

    def _assign(self, declared: str, key: str) -> str:
        options = self._options
        return declared or splits.assign_split(key, options.seed, options.ratios)

    def _parse_split(self, item: Row) -> str:
        """Returns the split that a row declares; empty if it declares none.

        An unknown split is an error of the whole source. Known ones are kept in `_declared`.
        """
        text = "" if self._split is None else as_text(item.values[self._split])
        if text not in self._declared:
            parsed = splits.parse_split(text)
            if parsed is None:
                if item.fault:
                    return splits.UNASSIGNED  # the row is rejected for another reason anyway
                guess = suggest(text.upper(), ("TRAIN", "VALIDATION", "TEST"))
                where = f"{self._source.name}, row {item.row}"
                raise DataError(
                    f"{where}: unknown split {text!r}. {guess}".rstrip(),
                    f"Known: {splits.known_names()}.",
                )
            self._declared[text] = parsed
        return self._declared[text]

    def _parse_span(self, item: Row) -> int:
        """Returns the span of a row, which is that of its file if no column has it.

        It is kept in `_spans`.
        """
        if self._span is None:
            return self._source.span
        cell = item.values[self._span]
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

    def _parse_image(self, item: Row) -> tuple[str, str]:
        """Returns the absolute URI of the image and the text that identifies it."""
        text = as_text(item.values[self._image or 0])
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
        check_inside(uri, self._options.allowed_roots)
        # A DataFrame has no folder, so a relative path identifies an image as it is written.
        if is_relative and not self._base:
            return uri, uris.normalise_uri(cell)
        return uri, uris.relative_identity(uris.normalise_uri(uri), self._base)

    def _parse_identity(self, item: Row, declared: str, image: tuple[str, str]) -> str:
        """Returns the text whose hash is the key: the declared id, or else that of the image.

        Without an image, it is a hash of all cells and of how often they occurred until here.
        """
        if self._id is not None and (given := as_text(item.values[self._id])):
            return given
        if self._image is not None:
            return image[1]
        cells = [declared, *map(repr, item.values)]
        content = keys.make_key(keys.row_identity(cells, 0))
        self._occurrences[content] += 1
        return keys.make_key(keys.row_identity(cells, self._occurrences[content]))

    def _parse_inputs(self, item: Row) -> dict[str, Any]:
        inputs = self._inputs
        return {name: parse_cell(name, item.values[place], kind) for name, kind, place in inputs}

    def _keep_cells(self, item: Row, extra: dict[str, Any] | None) -> dict[str, Any]:
        """Returns the inputs of a rejected row, with the cells of targets that are not its label.

        Inputs that cannot be used are the cells.
        """
        if not item.values:
            return {}
        schema = self._source.schema
        kept = () if extra else [name for name, _, _ in self._inputs]
        names = [*kept, *(name for name in schema.targets if name != schema.label)]
        return {**(extra or {}), **{name: item.values[self._places[name]] for name in names}}

    def _show(self, item: Row, place: int | None) -> str | None:
        """Returns a cell of a rejected row as it was given; None if it has none."""
        if place is None or not item.values:
            return None
        value = item.values[place]
        has_parts = isinstance(value, list | dict)
        return "" if value is None else format_target(value) if has_parts else str(value)


def _take(values: Sequence[Any], places: Sequence[int]) -> Sequence[Any]:
    """Returns the values of some places; all if there are as many."""
    return values if len(places) == len(values) else [values[place] for place in places]


def _make_key(_: Row, identity: str, image: tuple[str, str]) -> str:
    """Returns the key of a row.

    Raises:
        RejectError: Its names cannot be stored.
    """
    check_unicode(identity)
    check_unicode(image[0])
    return keys.make_key(identity)


def _find_plain_prefix(base: str) -> str | None:
    """Returns what to put before a plain path to get a URI; None if no path can be plain."""
    is_plain = base.startswith("/") and base != "/" and uris.resolve_uri(base) == base
    return f"{base}/" if is_plain else None
