"""Requests to services: whatever answers, they end in time with an answer or one of our errors."""

from __future__ import annotations

import socket

import pytest

from darkroom.errors import TransientStorageError, UsageError
from darkroom.storage import services
from darkroom.storage.stores import retries
from darkroom.storage.uris import find_host

from ..raw_server import HOSTILE, OK, make_answer, serve_raw

DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.0)
    with serve_raw() as found:
        yield found


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_not_an_answer_is_tried_again_and_then_said(server, kind):
    server.answer = HOSTILE[kind]
    with pytest.raises(TransientStorageError, match="Asking failed 6 times in") as error:
        services.ask("Asking", f"{server.url}/geheim", {})
    assert len(server.requests) == 6
    assert "geheim" not in str(error.value)


def test_no_byte_prolongs_the_time_of_an_answer(server):
    server.answer = server.drip
    with retries.limit(seconds=0.3), pytest.raises(TransientStorageError, match="no end after"):
        services.ask("Asking", server.url, {})


def test_the_request_of_a_secret_url_is_not_shown_where_it_comes_back(server):
    server.answer = server.echo
    with pytest.raises(TransientStorageError, match="BadStatusLine") as error:
        services.ask("Asking", f"{server.url}/geheim", {})
    assert server.requests[0].startswith("GET /geheim ")
    assert "geheim" not in str(error.value)


def test_a_redirect_is_an_answer_and_no_token_goes_on(server):
    with serve_raw() as other:
        server.answer = (
            OK.replace(b"200 OK", b"302 Found") + f"Location: {other.url}\r\n\r\n".encode()
        )
        status, _ = services.ask("Asking", server.url, {"Authorization": "Bearer geheim"})
        assert (status, other.requests) == (302, [])
    assert "Authorization: Bearer geheim" in server.requests[0]


def test_values_go_as_json_and_the_answer_is_cut_and_has_no_token(server):
    server.answer = make_answer(b"Bearer geheim" + b"x" * (2 << 20), "403 Forbidden")
    headers = {"Authorization": "Bearer geheim"}
    status, said = services.ask("Asking", server.url, headers, {"name": "pets"})
    assert (status, said[:15]) == (403, b"Bearer [token]x")
    assert len(said) == (1 << 20) + len("[token]") - len("geheim")
    assert server.requests[0].startswith("POST / ")
    assert "Content-Type: application/json" in server.requests[0]


@pytest.mark.parametrize(
    ("number", "error"),
    [(socket.EAI_NONAME, UsageError), (socket.EAI_AGAIN, TransientStorageError)],
)
def test_a_name_that_nobody_has_does_not_come_back(server, monkeypatch, number, error):
    asked = []

    def look_up(*_, **__):
        asked.append(1)
        raise socket.gaierror(number, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(error, match="no such name"):
        services.ask("Asking", "http://registry.invalid/", {})
    assert len(asked) == (1 if error is UsageError else 6)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"message": "no"}', "no"),
        (b'{"error": {"message": "no", "code": 5}}', "no"),
        (b'{"error": "no"}', "no"),
        (b'{"message": {"a": 1}, "error": []}', '{"message": {"a": 1}, "error": []}'),
        (b"<html>\n  Log in", "<html> Log in"),
        (b"\xff{}", "\ufffd{}"),
        *((each, each.decode()) for each in (b"null", b"NaN", b'"no"')),
        (DEEP, "[" * 500),
    ],
)
def test_the_message_of_any_answer_is_found(body, message):
    assert services.find_message(body) == message


@pytest.mark.parametrize("data", [b"a b", b"a\nb", b"\xff", "\u00e9".encode(), b"a\0"])
def test_what_is_not_a_token_is_refused_unseen(tmp_path, data):
    (tmp_path / "token").write_bytes(data)
    with pytest.raises(UsageError, match="/token is not a token") as error:
        services.read_token(f"{tmp_path}/token")
    assert repr(data)[2:-1] not in str(error.value)


def test_a_token_may_be_empty_or_end_with_a_line(tmp_path):
    assert services.read_token("") == {}
    for text, headers in ((" \n", {}), ("t0ken\n", {"Authorization": "Bearer t0ken"})):
        (tmp_path / "token").write_text(text)
        assert services.read_token(f"{tmp_path}/token") == headers


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://registry:8080", "registry"),
        ("HTTPS://Hooks.example.com./T0/B0?a=b#c", "Hooks.example.com."),
        ("http://[::1]:80/x", "[::1]"),
        (f"http://{'a' * 63}.example", f"{'a' * 63}.example"),
        (f"http://{'a' * 64}.example", ""),
        *((url, "") for url in (
            "", "http:///x", "http://a..b/x", "http://.a/", "ftp://h/", "http://ann@h/", "http://h:0/",
            "http://h:65536/", "http://h:a/", "http://[h", "http://h/\u00e9", "http://h/ a", "http://h/\n",
            "http://ex\u00e4mple/", "http://h\\x", "http://ann:pass/word@h/",
        )),
    ],
)  # fmt: skip
def test_a_host_is_found_in_sound_urls_alone(url, host):
    assert find_host(url) == host
    if host:
        host.encode("idna")
