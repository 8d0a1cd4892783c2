"""The files about a model: for programs, for people, and for a repository."""

from __future__ import annotations

from darkroom.evaluation.report.facts import EVALUATION_FILE, Facts, encode_evaluation
from darkroom.evaluation.report.page import make_model_page
from darkroom.evaluation.report.pictures import PagePictures
from darkroom.evaluation.report.result import Evaluation

PAGE_FILE = "model.html"
CARD_FILE = "model.md"
EVALUATION_FILES = (EVALUATION_FILE, CARD_FILE, PAGE_FILE)


def encode_files(found: Evaluation, pictures: PagePictures, facts: Facts) -> dict[str, bytes]:
    """Returns the content of `evaluation.json`, `model.md` and `model.html`.

    They contain no time and no host, so equal models and records give equal files.

    Args:
        found: The numbers.
        pictures: The images of the page.
        facts: How the model was made.
    """
    page = make_model_page(found, facts, pictures)
    return {
        EVALUATION_FILE: encode_evaluation(found, facts),
        CARD_FILE: page.to_markdown().encode(),
        PAGE_FILE: page.to_html().encode(),
    }
