"""Writes the parsed rows of a source to local disk, where they are then compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom.dataset.index import INPUT_TYPES
from darkroom.dataset.objects import ObjectCounts
from darkroom.dataset.rejects import OBJECT_STAGE, RejectsWriter
from darkroom.dataset.schema import Schema
from darkroom.manifest.chunks import CHUNK_ROWS, LOOKUP_THREADS, look_up, read_chunks
from darkroom.manifest.fingerprint import Fingerprint
from darkroom.manifest.rows import COLUMNS, Chunk, parse_blocks
from darkroom.manifest.sources.base import Source
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime.process import collect_less_garbage
from darkroom.targets.kind import find_kind

# Ranges of the order are read later: so many times fewer row groups have rows of one.
_CHUNKS_AT_ONCE = 8
# Looking for repeated keys and paths would cost time and find none.
REPEATED_COLUMNS = ["split", "declared", "label"]


@dataclass(frozen=True)
class StagedRows:
    """Rows of all sources on local disk.

    Attributes:
        path: Parquet file of the entries, with a column for each of `COLUMNS`.
        rows: Number of rows, rejected ones included.
        rejects: Parquet file of the rejects.
        objects: Numbers of the objects in all rows; None for targets without objects.
        fingerprint: See `Manifest.fingerprint`.
    """

    path: str
    rows: int
    rejects: str
    objects: ObjectCounts | None
    fingerprint: str


def stage_rows(
    sources: Sequence[Source],
    options: ManifestOptions,
    scratch: str,
    count: Callable[[int], None] | None = None,
) -> StagedRows:
    """Parses all rows and writes them to `scratch`, with the state of their images.

    Args:
        sources: The sources.
        options: How rows become entries.
        scratch: A local folder.
        count: Called now and then with the number of rows that were read.

    Raises:
        DataError: A source as a whole cannot be used.
        OSError: A source cannot be read, or `scratch` cannot be written.
    """
    with (
        collect_less_garbage(),
        _Stage(scratch, sources, options) as stage,
        ThreadPoolExecutor(1) as pool,
        ThreadPoolExecutor(LOOKUP_THREADS) as lookups,
    ):
        # While one chunk is parsed, the images of the previous one are looked up, which takes half
        # as long and does not need the interpreter.
        pending: Future[None] = Future()
        pending.set_result(None)
        rows = 0
        for chunk in read_chunks(parse_blocks(sources, options)):
            rows += chunk.num_rows
            if count:
                count(rows)
            pending.result()
            pending = pool.submit(stage.add, chunk, lookups)
        pending.result()
    return stage.finish()


class _Stage:
    """Writes chunks of rows; a context manager."""

    def __init__(self, scratch: str, sources: Sequence[Source], options: ManifestOptions) -> None:
        schema = sources[0].schema
        self._path = os.path.join(scratch, "entries.parquet")
        self._rejects_path = os.path.join(scratch, "bad.parquet")
        self._arrow = _make_arrow_schema(schema)
        self._kind = find_kind(schema.target_kind)
        self._read = self._rejected = self._alone = 0
        self._good = pq.ParquetWriter(self._path, self._arrow, use_dictionary=REPEATED_COLUMNS)
        self._bad = RejectsWriter(self._rejects_path)
        self._fingerprint = Fingerprint(options, sources)
        self._rows = 0
        self._waiting: list[pa.Table] = []

    def __enter__(self) -> _Stage:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is None:
            self._write()
        self._good.close()
        self._bad.__exit__(kind, *rest)

    def add(self, chunk: Chunk, lookups: Executor) -> None:
        """Adds the next rows, and looks up their images; called in one thread at a time."""
        look_up(chunk, lookups)
        self._rows += chunk.num_rows
        self._fingerprint.update(chunk)
        for reject in chunk.rejects:
            self._bad.add(reject)
            self._rejected += self._kind.count(reject.label)
            self._alone += reject.stage == OBJECT_STAGE
        self._read += sum(map(self._kind.count, chunk.columns["label"]))
        columns = [pa.array(chunk.columns[field.name], field.type) for field in self._arrow]
        self._waiting.append(pa.table(columns, schema=self._arrow))
        if len(self._waiting) == _CHUNKS_AT_ONCE:
            self._write()

    def _write(self) -> None:
        """Writes the chunks that wait, sorted: each row group has a part of the order."""
        if self._waiting:
            table = pa.concat_tables(self._waiting).sort_by([("order", "ascending")])
            self._good.write_table(table, CHUNK_ROWS)
            self._waiting.clear()

    def finish(self) -> StagedRows:
        objects = None
        if self._kind.objects is not None:
            # What becomes of those that are read is not known yet.
            objects = ObjectCounts(self._read, self._rejected, alone=self._alone)
        fingerprint = self._fingerprint.hexdigest()
        return StagedRows(self._path, self._rows, self._rejects_path, objects, fingerprint)


def _make_arrow_schema(schema: Schema) -> pa.Schema:
    """Returns the columns of staged rows: `COLUMNS`, `extra` only for inputs."""
    types = {**COLUMNS, "label": find_kind(schema.target_kind).listed_type}
    if schema.inputs:
        types["extra"] = pa.struct([(name, INPUT_TYPES[kind]) for name, kind in schema.inputs])
    return pa.schema([(name, kind) for name, kind in types.items() if kind is not None])
