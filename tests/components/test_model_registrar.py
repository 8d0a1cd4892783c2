from __future__ import annotations

import pytest
from tfx.types import standard_artifacts

from darkroom.components.artifacts import ModelPage
from darkroom.components.model_registrar.executor import Executor

from ..kfp.registries import Registry, write_evaluation
from ..pipelines.kubeflow_server import serve

pytestmark = pytest.mark.tfx


@pytest.mark.parametrize("destination", ["", "1795224331", "s3://models/1795224331"])
def test_a_pushed_model_is_registered_where_it_is(tmp_path, monkeypatch, destination):
    monkeypatch.setenv("DARKROOM_MOUNTS", str(tmp_path))
    pushed, page = standard_artifacts.PushedModel(), ModelPage()
    pushed.uri, page.uri = f"{tmp_path}/minio/ml/pushed", f"{tmp_path}/minio/ml/page"
    if destination:
        pushed.set_string_custom_property("pushed_destination", destination)
    write_evaluation(tmp_path / "minio/ml/page")
    with serve(kind=Registry) as registry:
        values = {"registry": registry.url, "model_name": "pets", "run": "7"}
        Executor().Do({"pushed_model": [pushed], "page": [page]}, {}, values)
    uris = [each["uri"] for key, each in registry.made.items() if key[0] == "artifact"]
    place = {"1795224331": "s3://ml/pushed/1795224331"}.get(destination, destination)
    assert uris == [place] * bool(destination)
