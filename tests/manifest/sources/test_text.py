import os

import pytest

from darkroom.errors import DataError, UsageError
from darkroom.manifest.sources.text import MAX_LINE_CHARACTERS, TextFile
from darkroom.options.manifest import parse_source_encoding


@pytest.fixture
def write(tmp_path):
    """Writes bytes to a file and returns its path."""

    def write(content):
        (tmp_path / "m.csv").write_bytes(content)
        return str(tmp_path / "m.csv")

    return write


def test_lines_keep_their_ends_and_lose_the_mark(write):
    assert list(TextFile(write("\ufeffa\r\nä\rb".encode())).lines()) == ["a\r\n", "ä\r", "b"]
    assert list(TextFile(write(b"a\rb\nc"), newline="\n").lines()) == ["a\rb\n", "c"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_mark_is_left_out_in_every_encoding(write, encoding):
    content = "\ufeffsplit\n\ufeffb".encode(encoding)
    assert list(TextFile(write(content), encoding).lines()) == ["split\n", "\ufeffb"]


def test_a_line_of_the_longest_length_is_read(write):
    longest = "x" * (MAX_LINE_CHARACTERS - 1) + "\n"
    assert list(TextFile(write((longest * 2).encode())).lines()) == [longest] * 2
    with pytest.raises(DataError, match="line 2: longer"):
        list(TextFile(write(f"a\nx{longest}".encode())).lines())


@pytest.mark.parametrize("before", [0, 1, 70_000, (1 << 20) - 3, (1 << 20) - 2, 3_000_000])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_the_first_bad_byte_is_named_wherever_it_stands(write, before, mark):
    line = b"y" * 63 + b"\n"
    count, rest = divmod(before, len(line))
    content = mark + line * count + b"z" * rest + b"\xe2\x82x\n\xff"
    place = content.index(b"\xe2")
    with pytest.raises(DataError, match=rf"line {count + 1}, byte {place:,}: "):
        list(TextFile(write(content)).lines())


def test_a_character_that_is_cut_off_at_the_end_is_named(write):
    with pytest.raises(DataError, match="its end, byte 3: "):
        list(TextFile(write("a\n€".encode()[:-2])).lines())


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        ("Käse", "windows-1252", "a,Käse"),
        ("kůň", "windows-1250", "a,kùò"),
        ("猫", "shift_jis", "a,”L"),
        ("č", "cp775", "a,Ñ"),
        ("ü", "cp437", "a,\ufffd"),
    ],
)
def test_people_see_whether_the_usual_encoding_is_right(write, text, encoding, shown):
    with pytest.raises(DataError) as caught:
        list(TextFile(write(f"image,label\na,{text}\n".encode(encoding))).lines())
    assert f"it reads {shown!r}: if that is right, give --source-encoding" in caught.value.hint


@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252", "utf-16", "utf-16-le", "cp437"])
def test_text_is_read_in_the_encoding_that_is_given(write, encoding):
    path = write("Brötchen\nKäse\n".encode(encoding))
    assert list(TextFile(path, parse_source_encoding(encoding)).lines()) == ["Brötchen\n", "Käse\n"]


def test_the_wrong_encoding_is_named(write):
    with pytest.raises(DataError, match="is not ASCII, line 1, byte 2: ") as caught:
        list(TextFile(write("Brötchen".encode()), "ascii").lines())
    assert "in which the file was saved" in caught.value.hint


@pytest.mark.parametrize("name", ["latin-9000", "rot13", "base64", "", 5])
def test_an_unknown_text_encoding_is_rejected(name):
    with pytest.raises(UsageError, match="no text encoding"):
        parse_source_encoding(name)


def test_a_file_that_is_gone_at_the_end_is_refused(write):
    path = write(b"a\n" * 10)
    lines = TextFile(path).lines()
    next(lines)
    os.unlink(path)
    with pytest.raises(DataError, match="was changed"):
        list(lines)
