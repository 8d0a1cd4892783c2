"""gs:// by Google's client library; credentials are the application default ones."""

from __future__ import annotations

import contextlib
import http.client
import os
from typing import Any

import google.auth
import requests
import urllib3.exceptions
from google.api_core.exceptions import GoogleAPICallError, NotFound
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError
from google.auth.transport.requests import AuthorizedSession
from google.cloud import storage

from darkroom.errors import CredentialsError
from darkroom.storage.stores import (
    CONNECT_SECONDS,
    CREDENTIALS_HINT,
    MAX_CONNECTIONS,
    READ_SECONDS,
    Download,
    ListingPage,
    Object,
    Problem,
    judge_status,
)

try:
    from google.cloud.storage.exceptions import DataCorruption
except ImportError:
    # google-cloud-storage 2, of TFX 1.16.
    from google.resumable_media import DataCorruption

_SCOPES = ("https://www.googleapis.com/auth/devstorage.read_write",)
# Every call needs both: the library's own defaults are minutes long.
_ONCE: dict[str, Any] = {"retry": None, "timeout": (CONNECT_SECONDS, READ_SECONDS)}
_EMULATOR = "STORAGE_EMULATOR_HOST"
_KEY_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
_NETWORK = (
    TransportError,
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.ContentDecodingError,
    requests.exceptions.InvalidJSONError,
    http.client.HTTPException,
    urllib3.exceptions.HTTPError,
    ConnectionError,
    TimeoutError,
)


class GcsStore:
    """A client of Google Cloud Storage, or of an emulator that STORAGE_EMULATOR_HOST names.

    See `Store`, which says what each method does.
    """

    errors = (
        GoogleAPICallError,
        GoogleAuthError,
        requests.RequestException,
        DataCorruption,
        *_NETWORK,
    )

    def __init__(self) -> None:
        # The newest versions look up the bucket by themselves, to describe it in traces.
        os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        credentials = _find_credentials()
        self._is_anonymous = isinstance(credentials, AnonymousCredentials)
        session = AuthorizedSession(credentials)
        adapter = requests.adapters.HTTPAdapter(pool_maxsize=MAX_CONNECTIONS)
        for scheme in ("https://", "http://"):
            session.mount(scheme, adapter)
        # Only creating buckets needs a project.
        self._client: Any = storage.Client(project="none", credentials=credentials, _http=session)

    def advise(self, problem: Problem) -> str:
        """Says what to do when an object is denied, or the credentials are not accepted."""
        if self._is_anonymous:
            return (
                "No Google credentials were found: run 'gcloud auth application-default login', "
                "or set GOOGLE_APPLICATION_CREDENTIALS to the path of a key file."
            )
        if problem is Problem.CREDENTIALS:
            return CREDENTIALS_HINT.format("Google")
        return "Check the Google credentials, and that they may read, write and list the bucket."

    def judge(self, error: Exception) -> Problem:
        """Tells the meaning of one of `errors`."""
        if isinstance(error, GoogleAPICallError):
            return judge_status(error.code)
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return Problem.OTHER
        if isinstance(error, DataCorruption):
            return Problem.DAMAGED
        if isinstance(error, _NETWORK):
            return Problem.TRANSIENT
        return Problem.CREDENTIALS if isinstance(error, GoogleAuthError) else Problem.OTHER

    def list_page(
        self, bucket: str, prefix: str, delimiter: str, token: str | None, after: str = ""
    ) -> ListingPage:
        """Lists the objects that begin with a prefix, up to the delimiter, after a name."""
        listing = self._client.list_blobs(
            bucket,
            prefix=prefix,
            delimiter=delimiter or None,
            page_token=token,
            start_offset=after or None,
            **_ONCE,
        )
        objects = [_describe(blob) for blob in next(listing.pages, ())]
        return ListingPage(objects, sorted(listing.prefixes), listing.next_page_token)

    def stat(self, bucket: str, name: str) -> Object:
        """Looks up an object."""
        blob = self._client.bucket(bucket).blob(name)
        blob.reload(**_ONCE)
        return _describe(blob)._replace(modified=blob.time_created.timestamp())

    def read(self, bucket: str, name: str, download: Download) -> int | None:
        """Reads an object. Returns no length: the library compares length and checksum itself."""
        blob = self._client.bucket(bucket).blob(name)
        try:
            blob.download_to_file(download, raw_download=True, checksum="crc32c", **_ONCE)
        except DataCorruption as error:
            # An answer that was cut short has another checksum, too: it is asked for again.
            announced = error.response.headers.get("Content-Length")
            if announced != str(len(download.data)):
                text = f"{len(download.data)} bytes came, {announced} were announced"
                raise ConnectionError(text) from error
            raise
        return None

    def read_range(
        self, bucket: str, found: Object, first: int, last: int, download: Download
    ) -> None:
        """Reads bytes `first` to `last` of an object that must not have changed."""
        blob = self._client.bucket(bucket).blob(found.name)
        blob.download_to_file(
            download,
            start=first,
            end=last,
            raw_download=True,
            checksum=None,
            if_generation_match=int(found.version),
            **_ONCE,
        )

    def upload(self, bucket: str, name: str, file: str) -> None:
        """Writes an object from a local file."""
        blob = self._client.bucket(bucket).blob(name)
        blob.upload_from_filename(
            file, content_type="application/octet-stream", checksum="crc32c", **_ONCE
        )

    def replace(self, bucket: str, name: str, data: bytes, version: str) -> None:
        """Writes a small object if this version of it is there now."""
        self._client.bucket(bucket).blob(name).upload_from_string(
            data,
            content_type="application/octet-stream",
            checksum="crc32c",
            if_generation_match=int(version or 0),
            **_ONCE,
        )

    def copy(self, bucket: str, name: str, to_bucket: str, to_name: str) -> None:
        """Copies an object within the store."""
        source = self._client.bucket(bucket).blob(name)
        target = self._client.bucket(to_bucket).blob(to_name)
        token, *_ = target.rewrite(source, **_ONCE)
        while token:
            token, *_ = target.rewrite(source, token=token, **_ONCE)

    def delete(self, bucket: str, names: list[str]) -> None:
        """Deletes objects, whether or not they exist."""
        for name in names:
            with contextlib.suppress(NotFound):
                self._client.bucket(bucket).delete_blob(name, **_ONCE)


def _describe(blob: Any) -> Object:
    # An answer that lacks one of the numbers is damaged.
    return Object(blob.name, int(blob.size), str(int(blob.generation)))


def _find_credentials() -> Any:
    if os.environ.get(_EMULATOR):
        return AnonymousCredentials()
    try:
        return google.auth.default(scopes=_SCOPES)[0]
    except DefaultCredentialsError as error:
        if named := os.environ.get(_KEY_FILE):
            raise CredentialsError(
                f"The credentials that {_KEY_FILE} names ({named}) cannot be used: {error}",
                "Correct or unset it.",
            ) from error
        # Enough for public buckets; for others, the error says that there are no credentials.
        return AnonymousCredentials()
