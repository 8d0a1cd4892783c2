"""SQL over the views of an index: what it says of objects."""

from darkroom.targets.boxes.located import LOCATED
from darkroom.targets.boxes.object_type import FIELDS, FLAGS, SIDES

# A row for each object, with its size in pixels of the stored image.
OBJECTS = f"""
WITH found AS (
    SELECT row, uri, split, width, height, source_width, source_height,
        unnest(label_list) AS each, unnest(range(len(label_list))) AS number
    FROM records WHERE len(label_list) > 0
), objects AS (
    SELECT row, uri, split, number, each.label AS label, each.is_crowd AS is_crowd,
        each.xmin AS xmin, each.ymin AS ymin, each.xmax AS xmax, each.ymax AS ymax,
        (each.xmax - each.xmin) * width AS across, (each.ymax - each.ymin) * height AS down,
        {LOCATED} AS object
    FROM found
)
"""

# What an image is labelled with, for people, as `BoxesKind.show` says it.
TOLD = """
CASE WHEN label_list IS NOT NULL THEN coalesce(nullif(array_to_string([
    printf('%d %s', each.value, each.key) FOR each IN
    map_entries(list_aggregate([each.label FOR each IN label_list], 'histogram'))
], ', '), ''), '(none)') END
"""
# All that objects say, the same for equal ones. Tools write boxes with other digits, and so areas,
# which are those of the boxes where the list says none.
_SAYS = ", ".join(
    f"round(each.{name}, 3)" if name in SIDES else f"each.{name}"
    for name in FIELDS
    if name != "area"
)
# The same for two images if they have the same objects.
SAID = f"""
CASE WHEN label_list IS NOT NULL THEN
    hash(list_sort([hash({_SAYS}) FOR each IN label_list]))::VARCHAR END
"""
# Tools write pixels with two decimals, and make areas of these: more than their digits must differ.
_MOST_SIDE, _MOST_AREA = 1e-4, 1e-2
_OTHERS = {name: f"each[1].{name} <> each[2].{name}" for name in FIELDS}
_OTHERS |= {name: f"abs(each[1].{name} - each[2].{name}) > {_MOST_SIDE}" for name in SIDES}
_OTHERS["area"] = f"abs(each[1].area - each[2].area) > {_MOST_AREA} * each[2].area"
_DIFFER = """list_bool_or([{others} FOR each IN
    list_zip(list_sort(old.label_list), list_sort(new.label_list))])"""
# What else differs of objects that are the same, in whatever order. A list need not say the area.
DIFFERS = {
    "label": _DIFFER.format(others=" OR ".join(_OTHERS[name] for name in FIELDS if name != "area")),
    "area": _DIFFER.format(others=_OTHERS["area"]),
}
_MARKS = ", ".join(f"CASE WHEN each.{flag} THEN '{flag}' END" for flag in FLAGS)
# The sizes are those of COCO: an area of 32 x 32 and of 96 x 96 pixels.
SUMMARY = f"""{OBJECTS}, sizes AS (SELECT *, sqrt(across * down) AS side FROM objects)
SELECT coalesce(label, 'all') AS class, count(DISTINCT row) AS images, count(*) AS objects,
    round(count(*) / count(DISTINCT row), 2) AS "objects an image",
    count(*) FILTER (side < 32) AS "< 32 pixels",
    count(*) FILTER (side >= 32 AND side < 96) AS "32 to 96",
    count(*) FILTER (side >= 96) AS "larger", round(median(side), 1) AS "median side"
FROM sizes GROUP BY ROLLUP (label) HAVING objects > 0
ORDER BY grouping(label) DESC, objects DESC, class
"""
# Intersection over union of two objects.
_CROSSING = """greatest(0, least(one.xmax, other.xmax) - greatest(one.xmin, other.xmin))
        * greatest(0, least(one.ymax, other.ymax) - greatest(one.ymin, other.ymin))"""
_IOU = f"({_CROSSING}) / (one.area + other.area - {_CROSSING})"
# With more changed objects of an image, none is compared with the others.
_MAX_COMPARED = 500
# From the first on, an object is the same that was moved; from the second on, it was not moved.
_MOVED_IOU, _SAME_IOU = 0.5, 0.999
# Equal objects are taken out first: of the others, two are one if each overlaps the other most. One
# of another class is the same where it was not moved, and none of its class is as near.
CHANGES = f"""
WITH images AS (
    SELECT new.row AS row, new.uri AS uri, new.split AS split,
        new.source_width AS source_width, new.source_height AS source_height,
        old.label_list AS before, new.label_list AS after
    FROM pairs JOIN new ON new.row = pairs.row JOIN old ON old.row = pairs.other_row
    WHERE relabelled
), sides AS (
    SELECT *, TRUE AS is_new, unnest(after) AS each, unnest(range(len(after))) AS number FROM images
    UNION ALL SELECT *, FALSE, unnest(before), unnest(range(len(before))) FROM images
), objects AS (
    SELECT row, uri, split, is_new, number, each.label AS label,
        each.xmin::DOUBLE AS xmin, each.ymin::DOUBLE AS ymin,
        each.xmax::DOUBLE AS xmax, each.ymax::DOUBLE AS ymax, (xmax - xmin) * (ymax - ymin) AS area,
        {LOCATED} AS object, concat_ws(' ', {_MARKS}) AS marks,
        hash({_SAYS}) AS place
    FROM sides
), numbered AS (
    SELECT *, row_number() OVER (PARTITION BY row, is_new, place) AS copy FROM objects
), alone AS (
    SELECT * FROM numbered QUALIFY count(*) OVER (PARTITION BY row, place, copy) = 1
), changed AS (SELECT *, count(*) OVER (PARTITION BY row, is_new) AS size FROM alone),
matched AS (
    SELECT one.row AS row, one.number AS number, other.number AS other_number, {_IOU} AS iou,
        other.marks AS other_marks, other.label AS other_label, one.label <> other_label AS differs
    FROM changed AS one JOIN changed AS other
        ON one.row = other.row AND one.is_new AND NOT other.is_new
    WHERE {_IOU} >= if(differs, {_SAME_IOU}, {_MOVED_IOU})
        AND greatest(one.size, other.size) <= {_MAX_COMPARED}
    QUALIFY row_number() OVER (
            PARTITION BY one.row, one.number ORDER BY differs, iou DESC, other.number) = 1
        AND row_number() OVER (
            PARTITION BY one.row, other.number ORDER BY differs, iou DESC, one.number) = 1
), found AS (
    SELECT changed.*, iou, other_marks, other_label, differs
    FROM changed LEFT JOIN matched ON changed.row = matched.row
        AND changed.number = CASE WHEN is_new THEN matched.number ELSE other_number END
)
SELECT CASE WHEN differs THEN 'objects_relabelled'
        WHEN iou < {_SAME_IOU} THEN 'objects_moved' WHEN iou IS NOT NULL THEN 'objects_marked'
        WHEN is_new THEN 'objects_added' ELSE 'objects_gone' END AS change,
    row, uri, split, label, object, nullif(concat_ws(', ',
        CASE WHEN differs THEN concat('was ', other_label) END,
        CASE WHEN iou < {_SAME_IOU} THEN printf('%.3f of both in common', iou) END,
        CASE WHEN marks <> other_marks THEN printf('was %s, is %s',
            coalesce(nullif(other_marks, ''), 'plain'), coalesce(nullif(marks, ''), 'plain')) END
    ), '') AS detail
FROM found WHERE iou IS NULL OR (is_new AND (iou < {_SAME_IOU} OR differs OR marks <> other_marks))
"""
