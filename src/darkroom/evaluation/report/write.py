"""The files about a model: for programs, for people, and for a repository."""

from __future__ import annotations

from darkroom import storage
from darkroom.evaluation.report.card import encode_card
from darkroom.evaluation.report.facts import EVALUATION_FILE, Facts, encode_evaluation
from darkroom.evaluation.report.page import encode_page
from darkroom.evaluation.report.pictures import Gallery, make_gallery
from darkroom.evaluation.report.result import Evaluation
from darkroom.evaluation.report.tensorboard import write_summaries
from darkroom.evaluation.scores.scoring import Scored

PAGE_FILE = "model.html"
CARD_FILE = "model.md"
REPORT_FILES = (EVALUATION_FILE, CARD_FILE, PAGE_FILE)


def encode_files(found: Evaluation, scored: Scored, facts: Facts) -> dict[str, bytes]:
    """Returns the content of `evaluation.json`, `model.md` and `model.html`.

    They contain no time and no host, so equal models and records give equal files.

    Args:
        found: The numbers.
        scored: The images, from which the page takes some.
        facts: How the model was made.
    """
    return _encode_files(found, facts, make_gallery(scored))


def write_report(folder: str, found: Evaluation, scored: Scored, facts: Facts) -> None:
    """Writes the three files into a folder, and the events for TensorBoard beside the curves.

    Args:
        folder: A folder that is darkroom's.
        found: The numbers.
        scored: The images, from which the page takes some.
        facts: How the model was made.
    """
    gallery = make_gallery(scored)
    for name, data in _encode_files(found, facts, gallery).items():
        storage.write_bytes(storage.join(folder, name), data)
    write_summaries(folder, found, gallery, max(facts.exported_epoch - 1, 0))


def _encode_files(found: Evaluation, facts: Facts, gallery: Gallery) -> dict[str, bytes]:
    return {
        EVALUATION_FILE: encode_evaluation(found, facts),
        CARD_FILE: encode_card(found, facts).encode(),
        PAGE_FILE: encode_page(found, facts, gallery).encode(),
    }
