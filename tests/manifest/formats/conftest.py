import posixpath

import pytest

from darkroom.manifest.opening import open_sources
from darkroom.options.manifest import ManifestOptions


@pytest.fixture
def read(tmp_path):
    """Returns the source of a path, and its rows: values by the names of columns, then a fault."""

    def read(path=tmp_path, **options):
        (source,) = open_sources(path, ManifestOptions(**options))
        names = [name for name, _ in source.schema.columns]
        rows = []
        for row in source.rows():
            found = dict(zip(names, row.values, strict=True))
            uri = posixpath.join(source.base, found["image_uri"])
            found["image_uri"] = uri.removeprefix(f"{tmp_path}/")
            rows.append({**found, "fault": row.fault})
        return source, rows

    return read
