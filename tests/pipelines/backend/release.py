"""Releases of Kubeflow Pipelines, by what a task sees of them."""

from __future__ import annotations

from dataclasses import dataclass

# How a store is reached. It is among the metadata of each artifact, and no task reads it.
SESSION = '{"Provider":"minio","Params":{"fromEnv":"true"}}'


@dataclass(frozen=True)
class Release:
    """What differs between releases.

    Attributes:
        version: The release that the golden data are of.
        shows_names: Whether the folder of a task has the name that people see, not that of the
            task in the file.
        names_outputs: Whether outputs have their names in ExecutorInput, and in the cache's key.
        output_file: Where a task writes its ExecutorOutput; a file beside its outputs when empty.
        downloads_siblings: Whether an input brings everything whose key begins with its own key.
        numbers_logs: Whether the URI of the log ends with the number of the attempt.
    """

    version: str
    shows_names: bool
    names_outputs: bool
    output_file: str
    downloads_siblings: bool
    numbers_logs: bool

    def name_log(self, uri: str) -> str:
        """Returns the URI that the launcher gives the log of a first attempt."""
        return f"{uri}-0" if self.numbers_logs else uri


V2_5 = Release(
    version="2.5.0",
    shows_names=True,
    names_outputs=False,
    output_file="/tmp/kfp_outputs/output_metadata.json",
    downloads_siblings=True,
    numbers_logs=False,
)
V2_17 = Release(
    version="2.17.0",
    shows_names=False,
    names_outputs=True,
    output_file="",
    downloads_siblings=False,
    numbers_logs=True,
)
