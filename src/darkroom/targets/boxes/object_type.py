"""What an index says of each object of a record."""

SIDES = ("xmin", "ymin", "xmax", "ymax")
FLAGS = ("is_crowd", "difficult")
# Names of Arrow's types by field. Comparisons take the fields from here, so that none forgets a new
# one.
FIELDS = {
    "label": "string",
    **dict.fromkeys(SIDES, "float32"),
    **dict.fromkeys(FLAGS, "bool"),
    "area": "float32",
}
