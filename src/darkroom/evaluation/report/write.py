"""The files about a model: for programs, for people, and for a repository."""

from __future__ import annotations

from darkroom import storage
from darkroom.evaluation.report.card import encode_card
from darkroom.evaluation.report.facts import EVALUATION_FILE, Facts, encode_evaluation
from darkroom.evaluation.report.page import choose_labels, encode_page
from darkroom.evaluation.report.pictures import Gallery, make_gallery
from darkroom.evaluation.report.result import Evaluation
from darkroom.evaluation.report.tensorboard import write_summaries
from darkroom.evaluation.scores.metrics import Ints, count_confusions
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
    return _encode_files(found, facts, *_choose_images(scored))


def write_report(folder: str, found: Evaluation, scored: Scored, facts: Facts) -> None:
    """Writes the three files into a folder, and the events for TensorBoard beside the curves.

    Args:
        folder: A folder that is darkroom's.
        found: The numbers.
        scored: The images, from which the page takes some.
        facts: How the model was made.
    """
    confusion, gallery = _choose_images(scored)
    for name, data in _encode_files(found, facts, confusion, gallery).items():
        storage.write_bytes(storage.join(folder, name), data)
    write_summaries(folder, found, confusion, gallery, max(facts.exported_epoch - 1, 0))


def _choose_images(scored: Scored) -> tuple[Ints, Gallery]:
    predicted = scored.scores.argmax(axis=1)
    confusion = count_confusions(scored.truth, predicted, scored.scores.shape[1])
    return confusion, make_gallery(scored, choose_labels(confusion))


def _encode_files(
    found: Evaluation, facts: Facts, confusion: Ints, gallery: Gallery
) -> dict[str, bytes]:
    return {
        EVALUATION_FILE: encode_evaluation(found, facts),
        CARD_FILE: encode_card(found, facts).encode(),
        PAGE_FILE: encode_page(found, facts, confusion, gallery).encode(),
    }
