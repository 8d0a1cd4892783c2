import json

import pytest


@pytest.fixture
def write(tmp_path):
    """Writes files by relative path: text, bytes, or JSON of anything else; images may be empty."""

    def write(files):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            content = content if isinstance(content, str | bytes) else json.dumps(content)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(tmp_path)

    return write
