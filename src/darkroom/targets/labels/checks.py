"""Checks for any number of labels an image: those that a model cannot tell apart."""

from __future__ import annotations

from darkroom.targets.checks import TargetCheck

_PAIRED = """
WITH counts AS (SELECT label, count(*) AS records FROM named GROUP BY label),
together AS (
    SELECT one.label AS label, other.label AS other_label, count(*) AS records
    FROM named AS one JOIN named AS other ON one.row = other.row AND one.label < other.label
    GROUP BY ALL
)
SELECT together.* FROM together
JOIN counts AS one ON together.label = one.label
JOIN counts AS other ON together.other_label = other.label
WHERE together.records = one.records AND together.records = other.records
ORDER BY label, other_label
"""
_NEVER_ALONE = """
WITH sizes AS (SELECT row, len(label_list) AS labels FROM records)
SELECT label, count(*) AS records FROM named JOIN sizes USING (row)
GROUP BY label HAVING min(labels) > 1 ORDER BY label
"""

CHECKS = (
    TargetCheck(
        "paired_labels",
        "warn",
        "Labels that always come together",
        _PAIRED,
        "Labels that always come together, in pairs: {count:,}.",
        "A model cannot learn which is which. Join them, or add images that have one of them.",
    ),
    TargetCheck(
        "dependent_labels",
        "warn",
        "Labels that never come alone",
        _NEVER_ALONE,
        "Labels that are never the only one of an image: {count:,}.",
        "A model may learn the other labels instead. Add images with such a label alone.",
    ),
)
