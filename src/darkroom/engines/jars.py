"""The Java program that takes a job to Flink or Spark: Beam's job server."""

from __future__ import annotations

import os

from darkroom.errors import StorageError
from darkroom.runtime import progress
from darkroom.runtime.text import make_visible

# A folder with jars of job servers, as an image may have.
FOLDER_VARIABLE = "DARKROOM_JARS"
_GROUP = "org/apache/beam"


def find_jar(artifact: str, option: str) -> str:
    """Returns the path of a job server of the version of Beam that is installed.

    It is looked for in the folder that `DARKROOM_JARS` names and in Maven's local repository; else
    Beam downloads it, into a separate folder.

    Args:
        artifact: Its name in Maven's repositories, as beam-runners-flink-1.19-job-server.
        option: Beam's option for its path, for the error.

    Raises:
        StorageError: It is in neither place, and cannot be downloaded.
    """
    from apache_beam.runners.portability.job_server import JavaJarJobServer
    from apache_beam.utils.subprocess_server import JavaJarServer
    from apache_beam.version import __version__ as version

    name = f"{artifact}-{version}.jar"
    repository = os.path.join(os.path.expanduser("~/.m2/repository"), _GROUP, artifact, version)
    folders = [folder for folder in (os.environ.get(FOLDER_VARIABLE), repository) if folder]
    for folder in folders:
        if os.path.isfile(path := os.path.join(folder, name)):
            return path
    url = JavaJarServer.path_to_maven_jar(artifact, JavaJarServer.BEAM_GROUP_ID, version)
    try:
        with progress.step("Loading Beam's job server"):
            return str(JavaJarJobServer.local_jar(url))
    except Exception as error:  # Beam raises the errors of its library for files
        raise StorageError(
            f"Beam's job server {artifact}, version {version}, is not here and cannot be loaded "
            f"from {url}: {_describe(error)}.",
            f"Put {name} into {repository} or the folder that {FOLDER_VARIABLE} names, or give its "
            f"path by the Beam option {option}.",
        ) from error


def _describe(error: BaseException) -> str:
    """Returns the first error: Beam's own text has addresses and advice of several lines."""
    while error.__context__:
        error = error.__context__
    said = getattr(error, "strerror", None) or error
    return make_visible(str(said), max_characters=200).rstrip(".")
