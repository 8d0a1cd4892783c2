"""The files about a model: for programs, for people, and for a repository."""

from __future__ import annotations

from darkroom.evaluation.report.facts import EVALUATION_FILE, Facts, encode_evaluation
from darkroom.evaluation.report.page import make_model_page
from darkroom.evaluation.report.pictures import make_page_pictures
from darkroom.evaluation.report.result import Evaluation
from darkroom.evaluation.scores.scoring import Scored

PAGE_FILE = "model.html"
CARD_FILE = "model.md"
EVALUATION_FILES = (EVALUATION_FILE, CARD_FILE, PAGE_FILE)


def encode_files(found: Evaluation, scored: Scored, facts: Facts) -> dict[str, bytes]:
    """Returns the content of `evaluation.json`, `model.md` and `model.html`.

    They contain no time and no host, so equal models and records give equal files.

    Args:
        found: The numbers.
        scored: The images, from which the page takes some.
        facts: How the model was made.
    """
    page = make_model_page(found, facts, make_page_pictures(scored))
    return {
        EVALUATION_FILE: encode_evaluation(found, facts),
        CARD_FILE: page.to_markdown().encode(),
        PAGE_FILE: page.to_html().encode(),
    }
