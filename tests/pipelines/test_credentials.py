from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import string
from pathlib import Path
from typing import Any

import pytest

from darkroom.cli import main
from darkroom.errors import UsageError
from darkroom.options.compiled.credentials import (
    CREDENTIAL_PATTERNS,
    check_credentials,
    check_environment,
    find_credential,
)
from darkroom.pipelines.compilation.files import run_compile
from darkroom.pipelines.config import PipelineConfig

from .compiled import check_config

pytestmark = pytest.mark.tfx

_RANDOM = random.Random(7)
_ALNUM = string.ascii_letters + string.digits


def _draw(letters: str, length: int) -> str:
    return "".join(_RANDOM.choices(letters, k=length))


def _segment(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


# Made up, and put together here so that no scanner of repositories takes them for real ones.
_JWT = ".".join(
    (_segment({"alg": "HS256", "typ": "JWT"}), _segment({"sub": "1234"}), _draw(_ALNUM, 43))
)
SAMPLES = {
    "AWS access key id": "AKIA" + _draw(string.ascii_uppercase, 16),
    "AWS secret access key": "aws_secret_key = " + _draw(_ALNUM, 40),
    "AWS pre-signed URL": "s3://b/y.csv?X-Amz-Expires=600&X-Amz-Signature="
    + _draw("0123456789abcdef", 64),
    "Google signed URL": "https://storage.googleapis.com/b/y.csv?x-goog-signature="
    + _draw("0123456789abcdef", 512),
    "signature in a URL": "https://b.example/y?AWSAccessKeyId=A&Expires=17&Signature="
    + _draw(_ALNUM, 27)
    + "%3D",
    "Google API key": "AIza" + _draw(_ALNUM, 35),
    "Google OAuth token": "ya29." + _draw(_ALNUM, 60),
    "Google OAuth client secret": "GOCSPX-" + _draw(_ALNUM, 28),
    "Google Cloud Storage HMAC key": "GOOG1E" + _draw(string.ascii_uppercase, 55),
    "Google service account key": '{"type": "service_account", "private_key_id": "0a1b"}',
    "Azure storage account key": "AccountName=a;AccountKey=" + _draw(_ALNUM, 86) + "==",
    "Azure shared access key": "SharedAccessKey=" + _draw(_ALNUM, 43) + "=",
    "Azure shared access signature": "https://a.example/c?sv=2024&sig=" + _draw(_ALNUM, 43) + "%3D",
    "Azure client secret": "abc8Q~" + _draw(_ALNUM, 34),
    "private key (PEM)": "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIE",
    "JSON web token": _JWT,
    "GitHub token": "ghp_" + _draw(_ALNUM, 36),
    "GitLab token": "glpat-" + _draw(_ALNUM, 20),
    "Hugging Face token": "hf_" + _draw(string.ascii_letters, 34),
    "Slack token": "xoxb-" + _draw(string.digits, 12) + "-" + _draw(_ALNUM, 24),
    "Slack webhook": "https://hooks.slack.com/services/T0AAAA/B0BBBB/" + _draw(_ALNUM, 24),
    "PyPI token": "pypi-AgEIcHlwaS5vcmc" + _draw(_ALNUM, 60),
    "npm token": "npm_" + _draw(_ALNUM, 36),
    "Docker Hub token": "dckr_pat_" + _draw(_ALNUM, 27),
    "Stripe key": "sk_live_" + _draw(_ALNUM, 24),
    "API key (sk-)": "sk-proj-" + _draw(_ALNUM, 48),
    "Databricks token": "dapi" + _draw("0123456789abcdef", 32),
    "HTTP authorization": "Authorization: Bearer " + _draw(_ALNUM, 32),
    "password in a URL": "postgres://darkroom:tiger@db.example.com:5432/photos",
    "password in an assignment": "--db_password=correct-horse",
}

_SHA256 = hashlib.sha256(b"image").hexdigest()
LOOK_ALIKES = [
    hashlib.md5(b"image").hexdigest(),
    hashlib.sha512(b"image").hexdigest(),
    f"sha256:{_SHA256}",
    "123e4567-e89b-12d3-a456-426614174000",
    f"registry.example.com:5000/ml/darkroom@sha256:{_SHA256}",
    "gs://bucket/photos/2024-05-01/akia/IMG_0001.jpg",
    "s3://bucket/users@example.com/images.csv",
    "http://minio-service.kubeflow:9000",
    "https://example.com:443/path?user=me@example.com",
    "s3://bucket/images.csv?X-Amz-Expires=600&X-Amz-Signature=REDACTED",
    "gs://bucket/Signature=0123456789abcdef0123456789/images.csv",
    f"s3://bucket/images.csv?versionId={_draw(_ALNUM, 32)}&partNumber=1",
    "/mnt/photos/tokens/password/secret/images.csv",
    base64.b64encode(b"nothing secret at all in here, just words").decode(),
    base64.b64encode(hashlib.sha256(b"image").digest()).decode(),
    "sha256-" + base64.b64encode(hashlib.sha256(b"image").digest()).decode(),
    _segment({"labels": ["cat", "dog"], "note": "base64 of plain JSON"}),
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ" + _draw(_ALNUM, 60),
    "-----BEGIN CERTIFICATE-----",
    "my_package.models:build_secret_santa",
    "projects/1234567890/secrets/minio/versions/latest",
    "mlpipeline-minio-artifact/secretkey",
    "secret: no",
    "password=${DB_PASSWORD}",
    "sk-learn-digits-small",
    "hf_hub_download",
    "--service_account_email=pipeline@project.iam.gserviceaccount.com",
    "ya29 akia aiza ghp_ xoxb-",
    "a bearer of news, basic as that is",
    '{"path": "image", "token": "integer", "age": "float"}',
]


@pytest.mark.parametrize("kind", CREDENTIAL_PATTERNS)
def test_every_kind_is_found_alone_and_in_other_text(kind: str):
    sample = SAMPLES[kind]
    assert find_credential(sample) == kind
    assert find_credential(f'{{"note": "see {sample}"}}') is not None


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_text_that_only_looks_like_a_credential_is_accepted(text: str):
    assert find_credential(text) is None


def test_the_message_names_the_option_and_never_the_value():
    secret = SAMPLES["GitHub token"]
    for values, place in [
        ({"data": f"https://x/{secret}"}, "data seems to contain"),
        ({"beam_args": ("--runner=x", secret)}, "beam_args[1] seems to contain"),
        ({"env": {"A": secret}}, "env.A seems to contain"),
        ({"resources": {"Trainer": {"node_selector": {secret: "x"}}}}, "A key of resources."),
    ]:
        with pytest.raises(UsageError) as error:
            check_credentials(values)
        assert place in str(error.value)
        assert secret not in str(error.value)


@pytest.mark.parametrize(
    "options",
    [
        {"name": "SAMPLE"},
        {"label_map": "SAMPLE"},
        {"epochs": "SAMPLE"},
        {"policies": {"leakage": "SAMPLE"}},
        {"resources": {"Trainer": {"cpu": "SAMPLE"}}},
        {"allowed_roots": ["SAMPLE"]},
        {"SAMPLE": "x"},
    ],
)
def test_credentials_are_found_before_another_message_shows_them(
    options: dict[str, Any], tmp_path: Path
):
    secret = SAMPLES["GitHub token"]
    values = {"data": "gs://b/a", "root": "gs://b/r", "image": "a", "target": "kubeflow"}
    given = json.loads(json.dumps(options).replace("SAMPLE", secret))
    with pytest.raises(UsageError, match="seems to contain a credential") as error:
        run_compile({**values, "output": str(tmp_path / "p.yaml"), **given}, as_json=True)
    assert secret not in str(error.value)


SIGNED = "X-Amz-Signature=" + _draw("0123456789abcdef", 64)


@pytest.mark.parametrize(
    "url",
    [
        "s3://b/y.csv?X-Amz-Security-Token=" + _draw(_ALNUM, 100) + "%3D%3D",
        "https://b/y.csv?Signature=" + _draw(_ALNUM, 20) + "%2Fab%2Bcd%3D&AWSAccessKeyId=A",
        "gs://b/y?GoogleAccessId=a@b.example.com&Expires=17&Signature=" + _draw(_ALNUM, 344),
        "https://b.example/y?X-Goog-Expires=60&X-Goog-Signature=" + _draw("0123456789abcdef", 512),
        "https%3A%2F%2Fb.example%2Fy%3FExpires%3D17%26Signature%3D" + _draw(_ALNUM, 27),
    ],
)
def test_every_form_of_a_signed_url_is_found(url: str):
    assert find_credential(url) in ("AWS pre-signed URL", "Google signed URL", "signature in a URL")


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("compile --set=image=a --output=p.txt", ("set=data", "set=root", "output", "config")),
        ("submit --set=image=a --host=x", ("set=data", "host", "run-name", "config")),
        ("submit --pipeline=none.yaml --host=x", ("set=data", "set=root", "host", "pipeline")),
    ],
)
def test_no_command_shows_a_signed_url(
    command: str, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    url = f"s3://b/y.csv?{SIGNED}"
    for option in options:
        assert main([*command.split(), "--target=kubeflow", f"--{option}={url}"]) == 2
        out, err = capsys.readouterr()
        name = option.removeprefix("set=")
        said = rf"darkroom: (--{name}|{name}) seems to contain a credential: AWS pre-s"
        assert re.match(said, err), err
        assert "X-Amz" not in out + err


def test_percent_encoding_does_not_hide_a_credential():
    for secret in (SAMPLES["GitHub token"], SAMPLES["password in a URL"]):
        encoded = "".join(f"%{ord(character):02X}" for character in secret)
        assert find_credential(f"gs://b/{encoded}") == find_credential(secret)
    assert find_credential("gs://b/100%25%20wool%3A%20yes.csv") is None


def test_a_label_map_is_searched_too(tmp_path: Path):
    path = tmp_path / "labels.txt"
    path.write_text("cat\n" + SAMPLES["AWS access key id"] + "\n")
    config = PipelineConfig(data="gs://b/a", root="gs://b/r", image="a", label_map=str(path))
    with pytest.raises(UsageError, match="label_map, line 2 seems to contain"):
        check_config(config, "kubeflow")


@pytest.mark.parametrize(
    "name", ["AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "HF_TOKEN", "aws_access_key_id"]
)
def test_an_environment_variable_named_like_a_credential_is_rejected(name: str):
    with pytest.raises(UsageError, match=f"env.{name} is the name of a credential"):
        check_environment("env", {name: "short"})


def test_other_environment_variables_are_accepted():
    names = ("AWS_REGION", "AWS_ENDPOINT_URL", "GOOGLE_APPLICATION_CREDENTIALS_FILE", "KEYS")
    check_environment("env", dict.fromkeys(names, "value"))


def test_the_page_lists_every_kind():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "credentials.md").read_text()
    _, _, listed = page.partition("These are found:")
    assert " ".join(listed.split()).rstrip(".").split(", ") == [*CREDENTIAL_PATTERNS]
