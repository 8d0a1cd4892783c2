"""Croissant 1.0: a description of the index for search engines and `mlcroissant`.

It has no reader for TFRecord, so the images themselves are not described.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from darkroom.dataset.commit import Dataset
from darkroom.dataset.index import INDEX_PATTERN, index_schema
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.runtime.json_values import format_json
from darkroom.sidecars.described import Described
from darkroom.targets.kind import find_kind

_FILE = "croissant.json"
_TERMS = "http://mlcommons.org/croissant/"
# Croissant's own; `mlcroissant` warns of any other one.
_PROPERTIES = (
    "citeAs column equivalentProperty extract field fileObject fileProperty fileSet format "
    "includes isLiveDataset jsonPath key md5 parentField path recordSet references regex "
    "repeated replace samplingRate separator source subField transform"
)
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": _TERMS,
    "rai": f"{_TERMS}RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{name: f"cr:{name}" for name in _PROPERTIES.split()},
}


def list_sidecar_files(shards: Sequence[str]) -> list[str]:
    """Returns the paths of the sidecars below the dataset."""
    return [_FILE]


def build(described: Described) -> dict[str, bytes]:
    """Returns the contents of the sidecars by path."""
    dataset = described.dataset
    schema = index_schema({}, find_kind(dataset.target.kind).column)
    metadata = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": f"{_TERMS}1.0",
        "name": f"darkroom-{dataset.fingerprint[:12]}",
        "description": f"{dataset.written:,} images in TFRecord files, written by darkroom; the "
        f"index of them is described here. Its fingerprint is {dataset.fingerprint}."
        f"{_describe_objects(dataset)}",
        "version": "1.0.0",
        "distribution": [
            {
                "@type": "cr:FileSet",
                "@id": "index",
                "encodingFormat": "application/x-parquet",
                "includes": f"{INDEX_FOLDER}/{INDEX_PATTERN}",
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "records",
                "key": {"@id": "records/key"},
                "field": [_describe_column(field) for field in schema if not _has_parts(field)],
            },
            *_list_names("splits", "cr:Split", list(dataset.splits)),
            *_list_names("labels", "sc:Enumeration", list(dataset.labels)),
        ],
    }
    return {_FILE: format_json(metadata)}


def _describe_objects(dataset: Dataset) -> str:
    """Returns what is said of objects, as their column is not described; empty for none."""
    if dataset.objects is None:
        return ""
    return (
        f" The images have {dataset.objects.written:,} objects of {len(dataset.labels):,} classes, "
        "as boxes in the column label of the index and in the records."
    )


def _has_parts(field: pa.Field) -> bool:
    """Tells whether a column has objects, which `mlcroissant` does not read."""
    return bool(pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type))


def _describe_column(field: pa.Field) -> dict[str, Any]:
    is_list = pa.types.is_list(field.type)
    kind = field.type.value_type if is_list else field.type
    name = "Text" if kind == pa.string() else "Integer" if kind == pa.int64() else "Float"
    return {
        "@type": "cr:Field",
        "@id": f"records/{field.name}",
        "dataType": f"sc:{name}",
        **({"repeated": True} if is_list else {}),
        "source": {"fileSet": {"@id": "index"}, "extract": {"column": field.name}},
    }


def _list_names(name: str, kind: str, values: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the set of all splits or labels; none when there are none."""
    if not values:
        return []
    field = f"{name}/name"
    return [
        {
            "@type": "cr:RecordSet",
            "@id": name,
            "dataType": kind,
            "key": {"@id": field},
            "field": [{"@type": "cr:Field", "@id": field, "dataType": "sc:Text"}],
            "data": [{field: value} for value in values],
        }
    ]
