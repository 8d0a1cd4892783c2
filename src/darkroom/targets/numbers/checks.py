"""Checks for numbers to predict: constant ones, outliers, and splits that differ."""

from __future__ import annotations

from darkroom.targets.checks import TargetCheck

# A row for each number of an image; those that are missing are left out.
_VALUES = """
WITH numbers AS (
    SELECT row, uri, split, unnest(label_list)::DOUBLE AS value,
        unnest(range(1, len(label_list) + 1)) AS number
    FROM records
), found AS (SELECT * FROM numbers JOIN fields USING (number) WHERE NOT isnan(value))
"""
_CONSTANT = f"""{_VALUES}
SELECT name, any_value(value) AS value, count(*) AS records FROM found
GROUP BY number, name HAVING min(value) = max(value) AND count(*) > 1 ORDER BY number
"""
# By the median and the mean distance from it, which outliers do not move much. 1.4826 times the
# median distance is the standard deviation of a normal distribution.
_OUTLIERS = f"""{_VALUES}, middles AS (
    SELECT number, median(value) AS middle FROM found GROUP BY number
), spreads AS (
    SELECT number, any_value(middle) AS middle, 1.4826 * median(abs(value - middle)) AS spread
    FROM found JOIN middles USING (number) GROUP BY number
)
SELECT row, uri, split, name, value, round(abs(value - middle) / spread, 1) AS z,
    printf('%s is %g', name, value) AS detail
FROM found JOIN spreads USING (number)
WHERE spread > 0 AND abs(value - middle) > 10 * spread ORDER BY z DESC, row
"""
_SHIFTED = f"""{_VALUES}, splits AS (
    SELECT number, name, split, avg(value) AS mean, stddev_samp(value) AS spread,
        count(*) AS records
    FROM found GROUP BY number, name, split
)
SELECT other.split AS split, one.name AS name, other.mean AS mean, one.mean AS train_mean
FROM splits AS one JOIN splits AS other USING (number)
WHERE one.split = 'train' AND other.split <> 'train' AND one.records > 1
    AND abs(one.mean - other.mean) > 5 * one.spread / sqrt(other.records)
    AND abs(one.mean - other.mean) > 0.25 * one.spread
ORDER BY split, one.number
"""

CHECKS = (
    TargetCheck(
        "constant_numbers",
        "warn",
        "Numbers that are the same for all images",
        _CONSTANT,
        "Numbers that are the same for all images: {count:,}.",
        "There is nothing to learn. Leave the column out of --target-columns.",
    ),
    TargetCheck(
        "outlying_numbers",
        "warn",
        "Numbers far from all others",
        _OUTLIERS,
        "Numbers that are more than 10 standard deviations from the median: {count:,}.",
        "Look for typing errors and other units. A few such values decide what a model learns.",
    ),
    TargetCheck(
        "shifted_numbers",
        "warn",
        "Numbers that differ between splits",
        _SHIFTED,
        "Numbers whose mean in a split is not that in train: {count:,}.",
        "Scores then say little about new images. Leave the split column empty, so that rows are "
        "assigned at random.",
    ),
)
