"""The check of words that plain English does without."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_words.py"


@pytest.fixture(scope="module")
def find_words():
    spec = importlib.util.spec_from_file_location("check_words", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.find_words


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("# The path is " + "no file.", 1, "is no "),
        ("One.\n\n    # It is made\n    # " + "anew.", 4, "anew"),
        ("Rows\nthat are " + "refused.", 1, "Rows that are refused"),
        ("def test_what_is" + "_no_file_is_rejected():", 1, "is no "),
        ("What was changed stands" + " in the index.", 1, "stands in"),
        ("Me" + "nd the images.", 1, "Mend"),
    ],
)
def test_words_are_found_with_their_line(find_words, text, line, words):
    assert [hit[:2] for hit in find_words(text)] == [(line, words)]


@pytest.mark.parametrize(
    "text",
    [
        "There is no file at X.",
        "It is no longer there, and is no more than 3 bytes.",
        "We recommend augmentation.",
        "CSV stands for comma-separated values.",
        "A row was rejected.",
    ],
)
def test_good_sentences_are_left_alone(find_words, text):
    assert find_words(text) == []
