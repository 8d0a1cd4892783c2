"""How the rows of a source become a manifest."""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from darkroom import storage
from darkroom.dataset import labels
from darkroom.dataset.schema import Columns, Schema
from darkroom.dataset.splits import SplitRatios
from darkroom.errors import UsageError
from darkroom.options.checks import check_known, encode_json
from darkroom.options.fields import check_fields, spell_out
from darkroom.options.source import DOUBTS, MANY_LABELS, RowFields, SourceFields
from darkroom.targets.form import Form

# Each row without a split asks for them.
_USUAL_RATIOS = SplitRatios()


@dataclass(frozen=True, kw_only=True)
class ManifestOptions(RowFields):
    """How the rows of a source become a manifest: `SourceFields`, parsed.

    The paths of `allowed_roots`, `exclude`, `decisions`, `groups` and `image_dir` are absolute;
    links are followed where the rows are read. `source_encoding` is spelled as in Python.

    Attributes:
        schema: Kind of every column; inferred from the names of the columns when None.
        labels: The label map in the order of its numbers, instead of `label_map`, which is read
            together with the source; with neither, the labels sorted as text.
        split_ratios: Shares of train, eval and test for rows that do not name a split; None if the
            user gave none, so that the names of lists may say the splits.
    """

    schema: Schema | None = None
    labels: tuple[str, ...] | None = None
    split_ratios: SplitRatios | None = None

    def __post_init__(self) -> None:
        """Checks the choices and the label map.

        Raises:
            UsageError: A choice is unknown. Or the map is empty, repeats a label, or is given
                beside integer labels.
        """
        check_fields(self)
        encoding = parse_source_encoding(self.source_encoding)
        object.__setattr__(self, "source_encoding", encoding)
        check_known(self.accept, DOUBTS, "There is no doubt named")
        if self.label_separator is not None and not self.label_separator.strip("\0\n"):
            raise UsageError(
                "label_separator is empty.",
                f"Give the text between labels, as ';'. {labels.SEE_FORMS}",
            )
        if self.labels is not None:
            labels.build_label_map((), self.labels)
        is_given = self.labels is not None or self.label_map is not None
        if is_given and self.schema is not None and self.schema.has_integer_labels:
            raise UsageError(
                "A label map was given beside integer labels, which number themselves.",
                f"Drop the label map, or make the column a 'string_label'. {labels.SEE_FORMS}",
            )

    @property
    def ratios(self) -> SplitRatios:
        """Shares of train, eval and test for rows that do not name a split."""
        return self.split_ratios or _USUAL_RATIOS

    @property
    def places_rows(self) -> bool:
        """Whether the place of a row depends on others: on those of its group, or its class."""
        return bool(self.group_column is not None or self.groups or self.stratify or self.folds)

    @property
    def columns(self) -> Columns:
        """What is known about the columns of the source."""
        has_labels = self.label_separator is not None or self.label_kind == MANY_LABELS
        targets = self.label_columns, self.target_columns
        return Columns(self.schema, has_labels, *targets, self.span_column)

    def find_form(self, schema: Schema) -> Form:
        """Returns how the cells of rows with a schema say what an image is labelled with."""
        known = None if self.labels is None else frozenset(map(labels.normalise_label, self.labels))
        is_cell = schema.label is not None
        return Form(
            schema.targets,
            known,
            schema.has_integer_labels,
            (self.label_separator or "") if is_cell else None,
            self.empty_labels,
            orientation=self.box_orientation,
        )

    @classmethod
    @spell_out(SourceFields)
    def parse(cls, **options: Any) -> ManifestOptions:
        """Makes options from users' values. Reads no file.

        Args:
            options: The fields of `SourceFields`, each in any form that it takes in Python.

        Raises:
            UsageError: An argument is wrong.
        """
        given = {**vars(SourceFields(**options))}
        columns, label_map = given.pop("columns"), given["label_map"]
        if isinstance(label_map, str | os.PathLike):
            storage.absolute(label_map)  # checks that it is a path
            given["label_map"] = storage.expand_home(os.fspath(label_map))
        else:
            given |= {"label_map": None, "labels": _parse_labels(label_map)}
        return cls(
            **{
                **given,
                "schema": None if columns is None else Schema.parse(columns),
                "split_ratios": _parse_split_ratios(given["split_ratios"]),
                "accept": _parse_names(given["accept"]),
                "allowed_roots": _parse_roots(given["allowed_roots"]),
                "exclude": _parse_path(given["exclude"]),
                "decisions": _parse_path(given["decisions"]),
                "groups": _parse_path(given["groups"]),
                "image_dir": _parse_path(given["image_dir"]),
                "label_columns": tuple(given["label_columns"]),
                "target_columns": tuple(given["target_columns"]),
            }
        )

    def to_json(self) -> str:
        """Returns the options as JSON text, the form in which a pipeline carries them."""
        columns = None if self.schema is None else list(self.schema.columns)
        ratios = self.split_ratios and self.split_ratios.as_tuple()
        return encode_json({**vars(self), "schema": columns, "split_ratios": ratios})

    @classmethod
    def from_json(cls, text: str) -> ManifestOptions:
        """Returns the options that `to_json` wrote."""
        values = json.loads(text)
        columns, label_map = values["schema"], values["labels"]
        values["schema"] = None if columns is None else Schema.parse(dict(columns))
        values["labels"] = None if label_map is None else tuple(label_map)
        if ratios := values["split_ratios"]:
            values["split_ratios"] = SplitRatios(*ratios)
        for name in ("accept", "allowed_roots", "label_columns", "target_columns"):
            values[name] = tuple(values[name])
        return cls(**values)


def _parse_labels(given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    if not isinstance(given, Sequence) or not all(isinstance(label, str) for label in given):
        raise UsageError(f"label_map must be a list of labels or a path, got {given!r:.80}.")
    return tuple(given)


def _parse_names(given: Any) -> tuple[str, ...]:
    return tuple(given.split(",") if isinstance(given, str) else given)


def _parse_path(given: Any) -> str | None:
    return None if given is None else storage.absolute(given)


def _parse_roots(given: Any) -> tuple[str, ...]:
    if isinstance(given, str | os.PathLike):
        given = (given,)  # the letters of a path are paths, too
    if not isinstance(given, Iterable):
        raise UsageError(f"allowed_roots must be a list of folders, got {given!r:.80}.")
    return tuple(map(storage.absolute, given))


def _parse_split_ratios(given: Any) -> SplitRatios | None:
    if isinstance(given, str):
        return SplitRatios.parse(given)
    if not isinstance(given, SplitRatios | None):
        raise UsageError(f"split_ratios must be text like '80/10/10', got {given!r:.80}.")
    return given


def resolve_roots(roots: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Returns folders as `check_inside` takes them: absolute, without links.

    Raises:
        UsageError: A local one is not a folder.
    """
    resolved = []
    for root in roots:
        path = storage.absolute(root)
        if not storage.is_remote(path):
            path = os.path.realpath(path)
            if not os.path.isdir(path):
                raise UsageError(
                    f"allowed_roots: {path} is not a folder.", "Pass an existing folder."
                )
        resolved.append(path)
    return tuple(resolved)


def parse_source_encoding(name: str) -> str:
    """Returns the name of a text encoding as Python spells it.

    Raises:
        UsageError: There is no such encoding.
    """
    try:
        "".encode(name)
        return codecs.lookup(name).name
    except (LookupError, TypeError, ValueError):
        raise UsageError(
            f"There is no text encoding {name!r}.",
            "Examples are utf-8, utf-16 and windows-1252.",
        ) from None
