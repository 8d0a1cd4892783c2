"""Credentials that a store does not accept end a run; they reject no image."""

from __future__ import annotations

import pytest

from darkroom import storage
from darkroom.cli import main
from darkroom.errors import CredentialsError

from .conftest import Fault
from .test_flows import NUM_IMAGES, write_source

NOT_ACCEPTED = [
    "400 ExpiredToken",
    "400 InvalidToken",
    "400 AuthorizationHeaderMalformed",
    "403 InvalidAccessKeyId",
    "403 SignatureDoesNotMatch",
    "403 RequestTimeTooSkewed",
    401,
]


@pytest.mark.parametrize("kind", NOT_ACCEPTED)
def test_s3_says_who_may_not_ask(s3, kind):
    s3.fail("GET", kind)
    path = "s3://photos/a"
    with pytest.raises(CredentialsError, match=f"Reading {path} failed, because of the cr") as e:
        storage.read_bytes(path)
    assert (e.value.exit_code, e.value.code) == (3, "access")
    assert "correct the AWS credentials, and check this machine" in e.value.hint
    # It says nothing about the object.
    assert not isinstance(e.value, PermissionError)
    assert len(s3.requests) == 1


def test_what_the_libraries_raise_without_asking_for_the_object(s3, gs):
    import botocore.exceptions as exceptions
    from google.auth.exceptions import RefreshError, TransportError

    from darkroom.storage.requests import open_store
    from darkroom.storage.stores import Problem

    amazon, google = open_store("s3://photos/a"), open_store("gs://photos/a")
    denied = {"Error": {"Code": "AccessDenied"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
    role = exceptions.ClientError(denied, "AssumeRoleWithWebIdentity")
    for error in (exceptions.NoCredentialsError(), exceptions.UnauthorizedSSOTokenError(), role):
        assert amazon.judge(error) is Problem.CREDENTIALS
    assert amazon.judge(exceptions.ClientError(denied, "GetObject")) is Problem.DENIED
    assert google.judge(RefreshError("invalid_grant")) is Problem.CREDENTIALS
    assert google.judge(TransportError("no answer")) is Problem.TRANSIENT


def _convert(s3, monkeypatch, fault: Fault) -> int:
    """Converts images, where a fault begins when a worker looks for an earlier run's work."""
    source = write_source("s3://photos")
    s3.on_request = lambda line: "/shard-" not in line or s3.faults.append(fault)
    given = ["--output-dir", "s3://photos/data", "--max-rejects", "1", "--json"]
    return main(["convert", source, *given])


@pytest.mark.heavy
@pytest.mark.fault(
    28,
    "credentials that expire, are wrong or missing; a clock that is off",
    "the run ends with exit code 3, without a dataset: no row is rejected",
    hint="Renew or correct the AWS credentials, and check this machine's clock.",
)
def test_a_token_that_expires_while_shards_are_written_rejects_no_row(s3, monkeypatch, capsys):
    assert _convert(s3, monkeypatch, Fault("images/3.jpg", "400 ExpiredToken")) == 3
    printed = capsys.readouterr().out
    assert "Reading s3://photos/images/3.jpg failed, because of the credentials" in printed
    assert "ExpiredToken" in printed
    assert not storage.exists("s3://photos/data/dataset.json")


@pytest.mark.heavy
@pytest.mark.fault(
    28,
    "a store that refuses all images, or 20 and gives none between them",
    "the run ends with exit code 3",
    hint="Without the right to list, S3 answers the same for images that do not exist.",
)
def test_a_store_that_refuses_all_images_is_the_environment(s3, monkeypatch, capsys):
    assert _convert(s3, monkeypatch, Fault("GET /photos/images/", "403 AccessDenied")) == 3
    printed = capsys.readouterr().out
    assert "None of the images may be read. The first:" in printed
    assert printed.count("permission_denied") == NUM_IMAGES
    assert "Without the right to list, S3 answers the same" in printed
