"""The images that the page of a model shows, as thumbnails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from darkroom.evaluation.scores.scoring import Scored, read_numbered_images
from darkroom.images.thumbnails import make_thumbnails
from darkroom.targets.description import View
from darkroom.targets.scoring import find_scoring


@dataclass(frozen=True)
class PagePictures:
    """The images of a page.

    Attributes:
        view: Which images are shown, and what is said of them.
        thumbnails: `data:` URI by number; an image that cannot be read has none.
        names: File name or URI by number.
        sizes: Width and height of those with shapes, by number.
    """

    view: View
    thumbnails: Mapping[int, str]
    names: Mapping[int, str]
    sizes: Mapping[int, tuple[int, int]] = field(default_factory=dict)


def make_picture_rules(thumbnails: Mapping[int, str]) -> str:
    """Returns a rule for each image, so that one that is shown twice is in the page once."""
    rules = (f".i{number}{{background-image:url({uri})}}" for number, uri in thumbnails.items())
    return "\n".join([*rules, ""])


def make_page_pictures(scored: Scored) -> PagePictures:
    """Chooses images and makes their thumbnails."""
    learned = scored.learned
    view = find_scoring(learned.kind).show(scored.answers, scored.truth, learned)
    names: dict[int, str] = {}

    def read() -> Iterator[tuple[int, bytes]]:
        for number, image in read_numbered_images(scored.source, frozenset(view.captions)):
            names[number] = image.name
            yield number, image.data

    return PagePictures(view, dict(make_thumbnails(read())), names)
