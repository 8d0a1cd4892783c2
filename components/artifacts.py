"""Artifact types of darkroom.

They declare no PROPERTIES, which Kubeflow and Vertex could not compile, and their type names are
`darkroom.<Class>`, under which those look the class up: each is exported by the package `darkroom`.
What they hold beyond files stands in custom properties.
"""

from __future__ import annotations

from tfx.types.artifact import Artifact
from tfx.types.system_artifacts import Dataset


class ImageManifest(Artifact):
    """Rows of a source in the order of their shards.

        {uri}/manifest.parquet   one row an example
        {uri}/labels.txt         one label a line, in the order of their numbers
        {uri}/manifest.json      counts, and what the columns are

    Custom properties: `rows`, `rejected`, `deduplicated` (int).
    """

    TYPE_NAME = "darkroom.ImageManifest"
    TYPE_ANNOTATION = Dataset


class RecordIndex(Artifact):
    """One row for every record of an Examples artifact.

    {uri}/index-00000-of-00016.parquet   one file a shard
    """

    TYPE_NAME = "darkroom.RecordIndex"
    TYPE_ANNOTATION = Dataset


class Rejects(Artifact):
    """One row for every row of the source that was refused, with the reason.

        {uri}/rejects.parquet   for programs
        {uri}/rejects.jsonl     a manifest, to be converted once the images are mended

    Custom property: `rejected` (int).
    """

    TYPE_NAME = "darkroom.Rejects"
    TYPE_ANNOTATION = Dataset


class ValidationReport(Artifact):
    """The verdict on a dataset.

        {uri}/report.json   for programs
        {uri}/report.md     for a repository
        {uri}/report.html   for people; self-contained

    Custom property: `blessed` (int, 1 or 0).
    """

    TYPE_NAME = "darkroom.ValidationReport"
