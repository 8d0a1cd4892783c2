"""What TFX's InteractiveContext shows of darkroom's artifacts in a notebook.

`context.show(component.outputs[...])` looks for a view by the artifact's type. The views here are
registered when a component is imported where IPython runs. All text of the user's is escaped, and
nothing is loaded from elsewhere.
"""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from itertools import chain, islice
from typing import Any

from tfx.orchestration.experimental.interactive import visualizations
from tfx.types import artifact_utils, standard_artifacts
from tfx.types.artifact import Artifact

from darkroom import storage
from darkroom.components.artifacts import (
    ImageManifest,
    ModelPage,
    RecordIndex,
    Rejects,
    ValidationReport,
)
from darkroom.components.system_artifacts import HTML, ClassificationMetrics, Markdown, Metrics
from darkroom.dataset import example, rejects
from darkroom.dataset.commit import find_dataset
from darkroom.dataset.index import read_index
from darkroom.dataset.layout import REJECTS_FILE
from darkroom.dataset.splits import SPLITS
from darkroom.dataset.tfrecord import read_records
from darkroom.evaluation.report.write import PAGE_FILE
from darkroom.images.decoders import ImagePreparer
from darkroom.images.pixels import encode_stored
from darkroom.manifest.table import read_manifest
from darkroom.options.image import ImageOptions
from darkroom.runtime.markup import Html, element, join_html
from darkroom.runtime.text import format_count
from darkroom.validation.report.sources import SourceImages
from darkroom.validation.report.thumbnails import make_thumbnail, make_thumbnails
from darkroom.validation.report.write import REPORT_HTML

MAX_CLASSES = 50
MAX_ROWS = 10
NUM_PICTURES = 12
_MAX_PAGE_BYTES = 16 << 20
_STYLE = Html(
    "<style>.darkroom table{border-collapse:collapse;margin:8px 0}"
    ".darkroom th,.darkroom td{text-align:left;padding:3px 14px 3px 0;vertical-align:top}"
    ".darkroom td{border-top:1px solid #8884}"
    ".darkroom i{display:inline-block;height:9px;margin-left:8px;background:#8fb0cf}"
    ".darkroom figure{display:inline-block;margin:6px;text-align:center}"
    ".darkroom img{image-rendering:pixelated;height:72px}</style>"
)


@cache
def register() -> None:
    """Makes TFX's InteractiveContext show darkroom's artifacts."""
    for kind, render in _VIEWS.items():
        visualizations.get_registry().register(_make_view(kind, render))


def _make_view(kind: type[Artifact], render: Callable[[Artifact], Html]) -> Any:
    class View(visualizations.ArtifactVisualization):
        ARTIFACT_TYPE = kind

        def display(self, artifact: Artifact) -> None:
            from IPython import display

            body = render(artifact)
            display.display(display.HTML(element("div", _STYLE, body, class_="darkroom")))

    return View


def render_report(artifact: Artifact) -> Html:
    """Returns the page of a report, in a frame of its own."""
    return _render_file(storage.join(artifact.uri, REPORT_HTML), _make_frame)


def _render_file(path: str, render: Callable[[str], Html]) -> Html:
    if storage.stat_file(path).size_bytes > _MAX_PAGE_BYTES:
        shown = element("p", "The page is too large for a notebook; open the file.")
    else:
        shown = render(storage.read_bytes(path).decode())
    return join_html(shown, element("p", element("code", path)))


def _make_frame(page: str) -> Html:
    style = "width:100%;height:640px;border:1px solid #8884"
    # The page has no scripts; without `allow-scripts` none would run.
    return Html(f'<iframe sandbox srcdoc="{html.escape(page)}" style="{style}"></iframe>')


def _make_text(text: str) -> Html:
    # As text, an element would cut it, and show the end of a line as a code point.
    return element("pre", Html(html.escape(text)))


def render_index(artifact: Artifact) -> Html:
    """Returns the number of records by class and split, and an image of each class."""
    table = read_index(artifact.uri, ["split", "label", "uri"])
    columns = [table[name].to_pylist() for name in ("split", "label", "uri")]
    counts = Counter(zip(*columns[:2], strict=True))
    samples = {label: uri for label, uri in zip(*columns[1:], strict=True) if uri}
    shown = dict(islice(sorted(samples.items(), key=str), NUM_PICTURES))
    sources = SourceImages()
    pictures = make_thumbnails((uri, sources.read(uri)) for uri in shown.values())
    figures = [(pictures[uri], label) for label, uri in shown.items() if uri in pictures]
    return join_html(_make_class_table(counts), _make_figures(figures))


def _make_class_table(counts: Mapping[tuple[str, str | None], int]) -> Html:
    splits = [split for split in SPLITS if any(found == split for found, _ in counts)]
    labels = sorted({label for _, label in counts}, key=str)
    largest = max(counts.values(), default=1)
    rows = [
        [
            label or "(no label)",
            *(_make_bar(counts.get((split, label), 0), largest) for split in splits),
        ]
        for label in labels[:MAX_CLASSES]
    ]
    return _make_table(["class", *splits], rows, len(labels))


def _make_bar(count: int, largest: int) -> Html:
    return join_html(f"{count:,}", element("i", style=f"width:{100 * count / largest:.0f}px"))


def render_examples(artifact: Artifact) -> Html:
    """Returns the number of records by split, and the first images of each.

    Records are in random order, so the first ones are a random sample.
    """
    dataset = find_dataset(artifact.uri)
    if dataset is None:
        splits = ", ".join(artifact_utils.decode_split_names(artifact.split_names))
        return element("p", f"Records that darkroom did not write. Splits: {splits or 'none'}.")
    parts = []
    with closing(ImagePreparer(ImageOptions())) as preparer:
        for name, split in dataset.splits.items():
            files = [storage.join(artifact.uri, shard.file) for shard in split.shards]
            if example.IMAGE_ENCODED in dataset.features:
                records = islice(chain.from_iterable(map(read_records, files)), NUM_PICTURES)
                figures = _make_figures(_draw_records(records, preparer))
            else:
                figures = Html("")
            parts += [element("h4", f"{name}: {format_count(split.records, 'record')}"), figures]
    return join_html(*parts)


def _draw_records(
    records: Iterable[bytes], preparer: ImagePreparer
) -> Iterator[tuple[str, str | None]]:
    for record in records:
        features: Any = example.decode_example(record)
        label = next(iter(features.get(example.LABEL_TEXT, ())), b"").decode(errors="replace")
        try:
            yield make_thumbnail(encode_stored(features), preparer), label
        except ValueError:  # a view must not fail because of a picture
            continue


def render_rejects(artifact: Artifact) -> Html:
    """Returns the number of rejected rows by reason, and the first of them."""
    found = rejects.count_rejects(artifact.uri)
    if not found:
        return element("p", "No row was rejected.")
    reasons = [[reason, f"{count:,}"] for reason, count in found.items()]
    first = rejects.read_first_rejects(storage.join(artifact.uri, REJECTS_FILE), MAX_ROWS)
    rows = [[f"{each.row:,}", each.uri, each.reason, each.detail] for each in first]
    return join_html(
        _make_table(["reason", "rows"], reasons),
        _make_table(["row", "image", "reason", "what is wrong"], rows, sum(found.values())),
    )


def render_manifest(artifact: Artifact) -> Html:
    """Returns where the rows of the source went, and the label map."""
    manifest = read_manifest(artifact.uri)
    rows = [
        ["rows in the source", f"{manifest.rows:,}"],
        *([f"to convert, {name}", f"{size.rows:,}"] for name, size in manifest.splits.items()),
        ["rejected", f"{manifest.rejected:,}"],
        ["deduplicated", f"{manifest.deduplicated:,}"],
    ]
    labels = [[f"{number}", label] for number, label in enumerate(manifest.labels[:MAX_CLASSES])]
    return join_html(
        _make_table(["", "rows"], rows),
        _make_table(["number", "label"], labels, len(manifest.labels)),
    )


def render_metrics(artifact: Artifact) -> Html:
    """Returns the numbers of an evaluation."""
    numbers = json.loads(storage.read_bytes(storage.join(artifact.uri, "metrics.json")))
    return _make_table(["metric", "value"], [[name, f"{v:,.6g}"] for name, v in numbers.items()])


def render_matrix(artifact: Artifact) -> Html:
    """Returns a confusion matrix: a row for each true class."""
    path = storage.join(artifact.uri, "confusion_matrix.json")
    if not storage.exists(path):
        return element("p", "The evaluation has no confusion matrix.")
    matrix = json.loads(storage.read_bytes(path))
    names = [each["displayName"] for each in matrix["annotationSpecs"]]
    rows = [
        [name, *(f"{count:,.0f}" for count in each["row"])]
        for name, each in zip(names, matrix["rows"], strict=True)
    ]
    return _make_table(["true class", *names], rows)


def _make_table(header: Sequence[str], rows: Sequence[Sequence[str]], total: int = 0) -> Html:
    head = element("tr", *(element("th", name) for name in header))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    more = total - len(rows)
    return join_html(
        element("table", head, *body), element("p", f"and {more:,} more") if more > 0 else None
    )


def _make_figures(figures: Iterable[tuple[str, str | None]]) -> Html:
    return join_html(
        *(
            element("figure", element("img", src=uri, alt=label or ""), element("br"), label or "")
            for uri, label in figures
        )
    )


_VIEWS: Mapping[type[Artifact], Callable[[Artifact], Html]] = {
    ValidationReport: render_report,
    ModelPage: lambda artifact: _render_file(storage.join(artifact.uri, PAGE_FILE), _make_frame),
    HTML: lambda artifact: _render_file(artifact.uri, _make_frame),
    Markdown: lambda artifact: _render_file(artifact.uri, _make_text),
    RecordIndex: render_index,
    Rejects: render_rejects,
    ImageManifest: render_manifest,
    standard_artifacts.Examples: render_examples,
    Metrics: render_metrics,
    ClassificationMetrics: render_matrix,
}
