"""Releases of Kubeflow Pipelines, by what a task and its records see of them."""

from __future__ import annotations

import json
from dataclasses import dataclass

SECRET = "mlpipeline-minio-artifact"


@dataclass(frozen=True)
class Release:
    """What differs between releases.

    Attributes:
        version: The release that the golden data are of.
        endpoint: The store of a root minio:// where the administrator names none.
        has_retries: Whether the session of a store says how often a request is retried.
        shows_names: Whether the folder of a task has the name that people see, not that of the
            task in the file.
        names_outputs: Whether outputs have their names in ExecutorInput, and in the cache's key.
        output_file: Where a task writes its ExecutorOutput; a file beside its outputs when empty.
        downloads_siblings: Whether an input brings everything whose key begins with its own key.
        keeps_failed_log: Whether the log of a failed attempt is uploaded and recorded.
        numbers_logs: Whether the URI of the log ends with the number of the attempt.
    """

    version: str
    endpoint: str
    has_retries: bool
    shows_names: bool
    names_outputs: bool
    output_file: str
    downloads_siblings: bool
    keeps_failed_log: bool
    numbers_logs: bool

    def name_log(self, uri: str, attempt: int) -> str:
        """Returns the URI that the launcher gives the log of an attempt; `uri` is the driver's."""
        return f"{uri}-{attempt}" if self.numbers_logs else uri

    def describe_session(self, root: str) -> str:
        """Returns how a store is reached, as the driver and the metadata store write it.

        Args:
            root: Pipeline root. For s3:// and gs:// the administrator has configured nothing.
        """
        scheme, separator, _ = root.partition("://")
        if not separator:
            return ""  # a folder, which takes the place of Vertex's bucket
        values = {"fromEnv": "true"}
        if scheme == "minio":
            values = {
                "accessKeyKey": "accesskey",
                "disableSSL": "true",
                "endpoint": self.endpoint,
                "fromEnv": "false",
                **({"maxRetries": "5"} if self.has_retries else {}),
                "region": "minio",
                "secretKeyKey": "secretkey",
                "secretName": SECRET,
            }
        return json.dumps({"Provider": scheme, "Params": values}, separators=(",", ":"))


V2_5 = Release(
    version="2.5.0",
    endpoint="minio-service.kubeflow:9000",
    has_retries=False,
    shows_names=True,
    names_outputs=False,
    output_file="/tmp/kfp_outputs/output_metadata.json",
    downloads_siblings=True,
    keeps_failed_log=False,
    numbers_logs=False,
)
V2_15 = Release(
    version="2.15.0",
    endpoint="minio-service.kubeflow:9000",
    has_retries=True,
    shows_names=False,
    names_outputs=True,
    output_file="",
    downloads_siblings=True,
    keeps_failed_log=False,
    numbers_logs=False,
)
V2_17 = Release(
    version="2.17.0",
    endpoint="seaweedfs.kubeflow:9000",
    has_retries=True,
    shows_names=False,
    names_outputs=True,
    output_file="",
    downloads_siblings=False,
    keeps_failed_log=True,
    numbers_logs=True,
)
RELEASES = (V2_5, V2_15, V2_17)
