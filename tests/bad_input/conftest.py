"""Fixtures of the tests of bad inputs: write a manifest, and expect a run to fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from darkroom.conversion.convert import convert
from darkroom.dataset.manifest import Manifest, ManifestRow, read_manifest_rows
from darkroom.dataset.rejects import REJECT_HINTS, Reject, read_rejects
from darkroom.dataset.schema import Schema
from darkroom.errors import DarkroomError
from darkroom.manifest.writer import write_manifest
from darkroom.options.conversion import ConversionOptions
from darkroom.options.manifest import ManifestOptions

from ..signatures import call


class Plan(NamedTuple):
    """A manifest that was written, its rows by their number in the source, and the rejects."""

    manifest: Manifest
    rows: dict[int, ManifestRow]
    rejects: dict[int, Reject]

    @property
    def reasons(self) -> dict[int, str]:
        """The reason of each rejected row; every reason has a hint."""
        assert {reject.reason for reject in self.rejects.values()} <= REJECT_HINTS.keys()
        return {row: reject.reason for row, reject in self.rejects.items()}

    @property
    def labels(self) -> list[str | None]:
        """The labels of the rows, in the order of the source."""
        return [self.rows[row].label for row in sorted(self.rows)]


def _write(folder: Path, content: str | bytes, name: str) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., Plan]:
    """Writes the manifest of a text, or of a path."""

    def plan(content: str | bytes | Path, name: str = "images.csv", **options: Any) -> Plan:
        source = content if isinstance(content, Path) else _write(tmp_path, content, name)
        if schema := options.pop("schema", None):
            options["schema"] = Schema.parse(schema)
        folder = str(tmp_path / "manifest")
        manifest = write_manifest(source, folder, folder, ManifestOptions(**options))
        rows = read_manifest_rows(folder, 0, manifest.num_examples)
        rejects = read_rejects(f"{folder}/rejects.parquet")
        planned = Plan(
            manifest, {row.row: row for row in rows}, {reject.row: reject for reject in rejects}
        )
        kept = manifest.rows - len(planned.rows) - len(planned.rejects)
        assert kept == manifest.deduplicated
        return planned

    return plan


@pytest.fixture
def refuse(tmp_path: Path) -> Callable[..., DarkroomError]:
    """Expects a conversion to fail as a whole: nothing is written, and there is a hint."""

    def refuse(
        content: str | bytes | Path, exit_code: int = 1, name: str = "images.csv", **options: Any
    ) -> DarkroomError:
        source = content if isinstance(content, Path) else _write(tmp_path, content, name)
        with pytest.raises(DarkroomError) as caught:
            call(convert, ConversionOptions, source, tmp_path / "out", **options)
        assert caught.value.exit_code == exit_code
        assert caught.value.hint
        assert not (tmp_path / "out").exists()
        return caught.value

    return refuse
