"""What the results of a detector say, and how good they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from darkroom.runtime.table import Table
from darkroom.runtime.text import format_count
from darkroom.targets.boxes.matching import Truth
from darkroom.targets.boxes.metrics import BoxesMetrics
from darkroom.targets.boxes.results import Results
from darkroom.targets.boxes.verdicts import (
    CONFUSED,
    FALSE,
    FOUND,
    NOT_JUDGED,
    Verdicts,
    list_errors,
)
from darkroom.targets.description import Caption, Images, Shape, Summary, View
from darkroom.targets.label.metrics import count_confusions
from darkroom.targets.label.view import choose_labels, fill_cells, leave_out, make_grid
from darkroom.targets.learned import Learned
from darkroom.targets.scoring import MAX_LISTED, Ints, Scores

# The colors of the list and of results, and what a page says of them.
_TRUTH_TONE, _RESULT_TONE = 4, 1
_COLORS_SAID = "Teal is the list, orange are results."
_NOTHING = "(nothing)"
_OPENS = "A click on a cell opens its images, and another one closes them."
# Images of the cells of the grid: these are larger than others.
_MAX_PICTURES = 60


class BoxesScoring(Scores):
    """See `darkroom.targets.scoring.Scores`; answers are results, and what is said of each."""

    metrics = BoxesMetrics
    names_are = "classes"
    score_name = "average precision"
    scalars = ("average_precision", "average_precision_50", "average_precision_75")

    def list_recalls(self, metrics: BoxesMetrics) -> Mapping[str, float | None]:
        """Returns the recall of each class, from the best score on."""
        return {each.label: each.recall for each in metrics.classes}

    def summarize(self, metrics: BoxesMetrics, where: str) -> Summary:
        """Returns average precision, by size and class, and the errors."""
        first, half, strict = (getattr(metrics, name) for name in self.scalars)
        best, errors = metrics.best, metrics.errors
        kinds = [f"{name} {count:,}" for name, count in errors.items() if count and name != "found"]
        said = ", ".join(kinds) or "none"
        sizes = ", ".join(
            f"{name} {'-' if each is None else f'{each:.4f}'}"
            for name, each in metrics.sizes.items()
        )
        silent, images = (
            format_count(count, "image") for count in (metrics.silent, metrics.records)
        )
        return Summary(
            headline=f"Average precision {first:.3f} on {where}, {half:.3f} at 0.5",
            numbers=[
                (
                    "AP",
                    f"{first:.4f} on {where} of {images} (average precision at 0.5 to 0.95)",
                ),
                ("AP at 0.5", f"{half:.4f} (at 0.75 {strict:.4f})"),
                ("AP by size", sizes),
                (
                    "Best score",
                    f"{best.score:.3f}: F1 {best.f1:.4f}, precision {best.precision or 0:.4f}, "
                    f"recall {best.recall:.4f}",
                ),
                ("Errors", f"{said} (from the best score on)"),
            ],
            tiles=[
                (f"{first:.3f}", f"average precision on {where}, at 0.5 to 0.95"),
                (f"{half:.3f}", "at 0.5"),
                (f"{best.f1:.3f}", f"F1 from the score {best.score:.2f} on"),
                *((f"{errors[name]:,}", _TILES[name]) for name in _TILES),
                (f"{metrics.objects:,}", f"objects of {images}"),
            ],
            is_good=half >= 0.5,
            table=_list_classes(metrics),
            tables=[_list_points(metrics)],
            notes=[f"{silent} of {where} without a result."] if metrics.silent else [],
        )

    def show(self, answers: tuple[Results, Verdicts], truth: Truth, learned: Learned) -> View:
        """Returns the images with the most errors, and which class is taken for which."""
        found, verdicts = answers
        errors = {
            name: np.bincount(images, minlength=len(truth.pixels))
            for name, images in list_errors(verdicts, found, truth).items()
        }
        total = np.sum([*errors.values()], 0)
        order = np.argsort(-total, kind="stable")
        worst = order[total[order] > 0][:MAX_LISTED].tolist()
        rows, columns, images = _list_pairs(found, verdicts, truth, len(learned.names))
        confusion = count_confusions(rows, columns, len(learned.names) + 1)
        shown = choose_labels(confusion)
        opened = leave_out(fill_cells(images, rows, columns, shown), _MAX_PICTURES)
        grid = make_grid(confusion, [*learned.names, _NOTHING], shown, opened)
        numbers = {n for group in (worst, *opened.values()) for n in group}
        return View(
            {n: _make_caption({name: each[n] for name, each in errors.items()}) for n in numbers},
            [Images("Worst images", f"Those with the most errors first. {_COLORS_SAID}", worst)],
            grid._replace(what=f"Objects: rows are the list, columns results. {_OPENS}"),
            shapes=_list_shapes(found, verdicts, truth, learned.names, numbers),
        )


_TILES = {
    "missing": "missing: objects without a result",
    "false": "false: results without an object",
    "confused": "confused: results with another class",
    "shifted": "shifted: less than half in common",
    "doubled": "doubled: a second result of an object",
}


def _list_classes(metrics: BoxesMetrics) -> Table:
    header = ("class", "AP", "AP at 0.5", "precision", "recall", "results", "objects")
    rows = [tuple(vars(each).values()) for each in metrics.classes]
    return Table("Classes", header, rows, ranked_by=1)


def _list_points(metrics: BoxesMetrics) -> Table:
    header = ("score", "precision", "recall", "F1", "results")
    rows = [(f"{each.score:.2f}", *[*vars(each).values()][1:]) for each in metrics.points]
    return Table("Precision and recall from a score on", header, rows)


def _make_caption(errors: Mapping[str, int]) -> Caption:
    said = [f"{count} {name}" for name, count in errors.items() if count]
    return Caption(", ".join(said) or "all found", "", "", is_right=not said)


def _list_pairs(
    found: Results, verdicts: Verdicts, truth: Truth, nothing: int
) -> tuple[Ints, Ints, Ints]:
    """Returns the classes of objects, those of results about them, and the places of their images.

    Args:
        found: The results.
        verdicts: What is said of them.
        truth: The objects.
        nothing: The number that stands for nothing: for an object or a result that is absent.
    """
    label = np.append(truth.label, nothing)
    own = np.isin(verdicts.kind, (FOUND, CONFUSED, FALSE))
    said = label[np.where(verdicts.kind == FALSE, -1, verdicts.object)][own]
    missing = verdicts.is_missing
    rows = np.append(said, truth.label[missing])
    columns = np.append(found.label[own], np.full(missing.sum(), nothing))
    return rows, columns, np.append(found.image[own], truth.image[missing])


def _list_shapes(
    found: Results, verdicts: Verdicts, truth: Truth, names: Sequence[str], images: set[int]
) -> dict[int, list[Shape]]:
    """Returns the objects of images and the results from the best score on."""
    shapes: dict[int, list[Shape]] = defaultdict(list)
    is_said = verdicts.kind != NOT_JUDGED
    for each, is_drawn, tone in ((truth, True, _TRUTH_TONE), (found, is_said, _RESULT_TONE)):
        for number in np.flatnonzero(np.isin(each.image, [*images]) & is_drawn).tolist():
            text = names[each.label[number]]
            text += f" {found.score[number]:.2f}" if each is found else ""
            left, top, right, bottom = each.boxes[:, number].clip(0, 1).tolist()
            shape = Shape(text, left, top, right, bottom, tone)
            shapes[int(each.image[number])].append(shape)
    return dict(shapes)


SCORING = BoxesScoring()
