from darkroom.runtime.class_table import describe_classes, format_missing_classes
from darkroom.runtime.result import format_rows


def format_class_table(classes, labels, *, bars=False):
    return format_rows([describe_classes(classes, labels)], bars=bars)


def test_a_few_classes_are_shown_in_the_order_of_the_label_map():
    classes = {"train": {"dog": 1_200, "cat": 9}, "eval": {"cat": 1}}
    assert format_class_table(classes, ["dog", "cat", "owl"]) == [
        "Labels     3  train  eval",
        "  dog         1,200     0",
        "  cat             9     1",
        "  owl             0     0",
    ]


def test_of_many_classes_the_largest_and_the_smallest_are_shown():
    classes = {"train": {f"class {n}": n for n in range(1, 101)}}
    assert format_class_table(classes, [f"class {n}" for n in range(101)]) == [
        "Labels     101  train",
        "  class 100       100",
        "  class 99         99",
        "  class 98         98",
        "  class 97         97",
        "  class 96         96",
        "  and 92 more between these",
        "  class 3           3",
        "  class 2           2",
        "  class 1           1",
        "  class 0           0",
    ]


def test_bars_are_as_long_as_the_share_of_the_largest_class():
    table = format_class_table({"train": {"cat": 10, "dog": 5}}, ["cat", "dog", "owl"], bars=True)
    assert [line.count("█") for line in table] == [0, 20, 10, 0]
    assert table[-1] == "  owl             0"


def test_labels_cannot_write_to_the_terminal_and_are_not_too_long():
    table = format_class_table({"train": {"\x1b[2J": 1, "x" * 99: 2}}, ["\x1b[2J", "x" * 99])
    assert table[1].startswith("  <U+001B>[2J ")
    assert all(len(line) <= 40 for line in table)


def test_without_labels_or_records_there_is_only_the_number():
    assert format_class_table({"train": {"": 4}}, []) == ["Labels     0"]
    assert format_class_table({}, ["cat", "dog"]) == ["Labels     2"]


def test_missing_classes_are_named_in_one_line():
    labels = [f"c{n}" for n in range(9)]
    all_of = dict.fromkeys
    classes = {"train": all_of(labels, 1), "eval": {"c0": 1}, "test": all_of(labels[1:], 1)}
    assert format_missing_classes(classes, labels) == (
        "No records of c1, c2, c3, c4, c5 and 3 more in eval; of c0 in test."
    )
    assert format_missing_classes({"train": {"cat": 1}, "eval": {"cat": 2}}, ["cat"]) == ""
    assert format_missing_classes({"eval": {"cat": 1}}, ["cat"]) == ""
    assert format_missing_classes({}, labels) == ""


def test_a_missing_eval_split_is_named():
    assert format_missing_classes({"train": {"cat": 1}}, ["cat"]) == "No records in eval."
    assert format_missing_classes({"train": {"cat": 1}, "test": {"dog": 1}}, ["cat", "dog"]) == (
        "No records in eval. No records of dog in train; of cat in test."
    )
