"""Artifact types of darkroom.

They declare no PROPERTIES, which cannot be compiled for Kubeflow and Vertex. Both find a class by
its type name `darkroom.<Class>`, so the package `darkroom` exports each class. Values that are not
files are custom properties. The Examples of ImageToTFRecord have `fingerprint` (text), `records`
(int), and the URIs of their `index` and `rejects` (text).
"""

from __future__ import annotations

from tfx.types.artifact import Artifact
from tfx.types.system_artifacts import Dataset


class ImageManifest(Artifact):
    """Rows of a source in the order of their shards.

        {uri}/manifest.parquet   one row per example
        {uri}/labels.txt         one label per line, in the order of their numbers
        {uri}/manifest.json      counts, and the kinds of the columns
        {uri}/read-as.json       how the source was read
        {uri}/decisions.jsonl    what was taken from a gallery, as lines that last

    Custom properties: `rows`, `rejected`, `deduplicated`, `removed` (int), `read_as` (text).
    """

    TYPE_NAME = "darkroom.ImageManifest"
    TYPE_ANNOTATION = Dataset


class RecordIndex(Artifact):
    """One row for every record of an Examples artifact.

    {uri}/index-00000-of-00016.parquet   one file per shard
    """

    TYPE_NAME = "darkroom.RecordIndex"
    TYPE_ANNOTATION = Dataset


class Rejects(Artifact):
    """One row for every rejected row of the source, with the reason.

        {uri}/rejects.parquet   for programs
        {uri}/rejects.jsonl     a manifest, to convert once the images are fixed

    Custom properties: `rejected` (int), and where images have objects, `rejected_objects` (int).
    """

    TYPE_NAME = "darkroom.Rejects"
    TYPE_ANNOTATION = Dataset


class ModelPage(Artifact):
    """How good a trained model is.

        {uri}/evaluation.json   for programs
        {uri}/model.md          for a repository
        {uri}/model.html        for people; self-contained
        {uri}/tensorboard       the confusion matrix and images, for TensorBoard

    Custom properties: `split` (text), `accuracy` (float).
    """

    TYPE_NAME = "darkroom.ModelPage"


class ValidationReport(Artifact):
    """The verdict on a dataset.

        {uri}/report.json   for programs
        {uri}/report.md     for a repository
        {uri}/report.html   for people; self-contained

    Custom property: `blessed` (int, 1 or 0). Of DatasetDiff also `added`, `removed`, `moved`,
    `relabelled`, `redrawn`, `encoded` (int).
    """

    TYPE_NAME = "darkroom.ValidationReport"
