"""s3:// by boto3; settings and credentials are those of AWS's own environment and files."""

from __future__ import annotations

import contextlib
from typing import Any

import boto3
import botocore.exceptions as exceptions
from boto3.s3.transfer import TransferConfig
from botocore import UNSIGNED
from botocore.config import Config
from botocore.parsers import ResponseParserError

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

_CHUNK_BYTES = 1 << 20
# Longer uploads are sent in parts, one after the other; a single request has at most 5 GB.
_PART_BYTES = 256 << 20
# Answers about who asks, not about an object. STS names some differently.
_REFUSED = frozenset(
    {
        "AuthorizationHeaderMalformed",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidIdentityToken",
        "InvalidSecurity",
        "InvalidToken",
        "MissingSecurityHeader",
        "NotSignedUp",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
        "UnrecognizedClientException",
    }
)
# Requests by which the client gets its credentials.
_SIGN_IN = ("AssumeRole", "CreateToken", "GetRoleCredentials")
_TRANSIENT = frozenset(
    {
        # What was written has another checksum than was sent with it.
        "BadDigest",
        "ConditionalRequestConflict",
        "InternalError",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "XAmzContentSHA256Mismatch",
    }
)
_CREDENTIALS = (
    exceptions.CredentialRetrievalError,
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.SSOError,
    exceptions.TokenRetrievalError,
)
_NETWORK = (
    exceptions.ConnectionError,
    exceptions.HTTPClientError,
    exceptions.IncompleteReadError,
    ResponseParserError,
    ConnectionError,
    TimeoutError,
)


class S3Store:
    """A client of Amazon S3, or of another store that speaks its protocol."""

    errors = (
        boto3.exceptions.Boto3Error,
        exceptions.BotoCoreError,
        exceptions.ClientError,
        *_NETWORK,
    )

    def __init__(self) -> None:
        try:
            session = boto3.session.Session()
            # Without credentials requests are unsigned, which is enough for public buckets.
            self._is_anonymous = session.get_credentials() is None
            config = Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                max_pool_connections=MAX_CONNECTIONS,
                retries={"total_max_attempts": 1, "mode": "standard"},
                signature_version=UNSIGNED if self._is_anonymous else None,
            )
            self._client: Any = session.client("s3", config=config)
        except (exceptions.BotoCoreError, ValueError) as error:
            # It repeats an endpoint that is not a URL, which may begin with a password.
            said = "wrong endpoint." if "@" in f"{error}" else error
            raise CredentialsError(
                f"s3:// cannot be used: {said}",
                "Check AWS_PROFILE, AWS_ENDPOINT_URL and the files of AWS's configuration.",
            ) from error

    def advise(self, problem: Problem) -> str:
        """Says what to do when an object is denied, or the credentials are not accepted."""
        if self._is_anonymous:
            return (
                "No AWS credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or AWS_PROFILE."
            )
        if problem is Problem.CREDENTIALS:
            return CREDENTIALS_HINT.format("AWS")
        return (
            "Check the AWS credentials, and that they may read, write and list the bucket. "
            "Without the right to list, S3 answers the same for an object that does not exist."
        )

    def judge(self, error: Exception) -> Problem:
        """Tells the meaning of one of `errors`."""
        if isinstance(error, boto3.exceptions.Boto3Error):
            # The managed upload hides the store's answer.
            cause = error.__context__
            return self.judge(cause) if isinstance(cause, self.errors) else Problem.OTHER
        if isinstance(error, exceptions.ClientError):
            code = str(error.response.get("Error", {}).get("Code"))
            if code in _REFUSED:
                return Problem.CREDENTIALS
            if code in _TRANSIENT:
                return Problem.TRANSIENT
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            found = judge_status(status)
            is_sign_in = error.operation_name.startswith(_SIGN_IN)
            return Problem.CREDENTIALS if is_sign_in and found is Problem.DENIED else found
        if isinstance(error, _CREDENTIALS):
            return Problem.CREDENTIALS
        if isinstance(error, exceptions.FlexibleChecksumError):
            return Problem.DAMAGED
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return Problem.OTHER
        return Problem.TRANSIENT if isinstance(error, _NETWORK) else Problem.OTHER

    def list_page(
        self, bucket: str, prefix: str, delimiter: str, token: str | None, after: str = ""
    ) -> ListingPage:
        """Lists the objects that begin with a prefix, up to the delimiter, after a name."""
        more = {"ContinuationToken": token} if token else {"StartAfter": after} if after else {}
        found = self._client.list_objects_v2(
            Bucket=bucket, Prefix=prefix, Delimiter=delimiter, **more
        )
        objects = [Object(o["Key"], o["Size"], o["ETag"]) for o in found.get("Contents", ())]
        folders = [folder["Prefix"] for folder in found.get("CommonPrefixes", ())]
        return ListingPage(objects, folders, found.get("NextContinuationToken"))

    def stat(self, bucket: str, name: str) -> Object:
        """Looks up an object."""
        found = self._client.head_object(Bucket=bucket, Key=name)
        written: float = found["LastModified"].timestamp()
        return Object(name, found["ContentLength"], found["ETag"], written)

    def read(self, bucket: str, name: str, download: Download) -> int | None:
        """Reads an object; returns its length."""
        response = self._client.get_object(Bucket=bucket, Key=name)
        size_bytes: int = response["ContentLength"]
        with contextlib.closing(response["Body"]) as body:
            download.expect(size_bytes)
            _copy(body, download)
        return size_bytes

    def read_range(
        self, bucket: str, found: Object, first: int, last: int, download: Download
    ) -> None:
        """Reads bytes `first` to `last` of an object that must not have changed."""
        response = self._client.get_object(
            Bucket=bucket, Key=found.name, Range=f"bytes={first}-{last}", IfMatch=found.version
        )
        with contextlib.closing(response["Body"]) as body:
            _copy(body, download)

    def upload(self, bucket: str, name: str, file: str) -> None:
        """Writes an object from a local file."""
        config = TransferConfig(
            multipart_threshold=_PART_BYTES, multipart_chunksize=_PART_BYTES, use_threads=False
        )
        self._client.upload_file(file, bucket, name, Config=config)

    def replace(self, bucket: str, name: str, data: bytes, version: str) -> None:
        """Writes a small object if this version of it is there now."""
        condition = {"IfMatch": version} if version else {"IfNoneMatch": "*"}
        try:
            self._client.put_object(Bucket=bucket, Key=name, Body=data, **condition)
        except (exceptions.ParamValidationError, exceptions.ClientError) as error:
            # Older clients do not know the conditions, and some stores refuse them.
            code = getattr(error, "response", {}).get("Error", {}).get("Code", "NotImplemented")
            if code != "NotImplemented":
                raise
            self._client.put_object(Bucket=bucket, Key=name, Body=data)

    def copy(self, bucket: str, name: str, to_bucket: str, to_name: str) -> None:
        """Copies an object within the store."""
        config = TransferConfig(use_threads=False)
        self._client.copy({"Bucket": bucket, "Key": name}, to_bucket, to_name, Config=config)

    def delete(self, bucket: str, names: list[str]) -> None:
        """Deletes objects, whether or not they exist."""
        objects = [{"Key": name} for name in names]
        answer = self._client.delete_objects(
            Bucket=bucket, Delete={"Objects": objects, "Quiet": True}
        )
        for failed in answer.get("Errors", ()):
            # Each name has its own answer; the first failure is reported for all.
            status = 403 if failed["Code"] == "AccessDenied" else None
            raise exceptions.ClientError(
                {"Error": failed, "ResponseMetadata": {"HTTPStatusCode": status}}, "DeleteObjects"
            )


def _copy(body: Any, download: Download) -> None:
    for chunk in body.iter_chunks(_CHUNK_BYTES):
        download.write(chunk)
