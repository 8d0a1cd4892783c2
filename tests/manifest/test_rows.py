import json
import re
import unicodedata

import pandas as pd
import pytest
from tests.parsed import Entry, parse_rows

from darkroom.dataset.keys import make_key
from darkroom.dataset.rejects import Reject, format_hint
from darkroom.dataset.schema import Kind, Schema
from darkroom.dataset.splits import SplitRatios
from darkroom.errors import DataError, UsageError
from darkroom.manifest.opening import open_sources
from darkroom.options.manifest import ManifestOptions
from darkroom.targets.boxes.kind import KIND


@pytest.fixture
def parse(tmp_path):
    """Parses the rows of a CSV or JSONL file, or of several."""

    def parse(*texts, name="m.csv", schema=None, **options):
        for number, text in enumerate(texts):
            content = text if isinstance(text, bytes) else text.encode()
            (tmp_path / f"{number}{name}").write_bytes(content)
        schema = None if schema is None else Schema.parse(schema)
        sources = open_sources(str(tmp_path / f"*{name}"), ManifestOptions(schema=schema))
        return list(parse_rows(sources, ManifestOptions(schema=schema, **options)))

    return parse


def parse_one(parse, *texts, **options):
    (item,) = parse(*texts, **options)
    return item


IMAGES = "image_uri,label\n"
BOX = [1, 2, 3, 4]


def test_absolute_paths_of_a_dataframe_are_ids_as_they_are():
    paths = [f"/photos/{number}.jpg" for number in range(40)]
    frame = pd.DataFrame({"image_uri": paths, "label": ["cat", "dog"] * 20})
    options = ManifestOptions()
    assert [entry.id for entry in parse_rows(open_sources(frame, options), options)] == paths


def test_a_row_becomes_an_entry(parse, tmp_path):
    entry = parse_one(parse, "split,image_uri,label,age\nVALIDATION,a.jpg , 007 ,8\n")

    assert isinstance(entry, Entry)
    assert entry._replace(order=0) == Entry(
        key=make_key("a.jpg"),
        id="a.jpg",
        uri=str(tmp_path / "a.jpg"),
        split="eval",
        declared="eval",
        label="007",
        row=1,
        span=0,
        order=0,
        size=None,
        mtime=None,
        extra={"age": "8"},
    )


def test_a_reject_keeps_the_span_of_its_row(parse):
    text = "image_uri,label,day,age\na.jpg,cat,5,old\n,cat,5,1\n"
    schema = {"image_uri": "image", "label": "string_label", "day": "span", "age": "integer"}
    rejects = parse(text, schema=schema)
    assert [(each.reason, each.span) for each in rejects] == [("bad_value", 5), ("no_image", 5)]


@pytest.mark.parametrize(
    ("cell", "uri", "identity"),
    [
        ("x/a.jpg", "BASE/x/a.jpg", "x/a.jpg"),
        ("./x/../a.jpg", "BASE/a.jpg", "a.jpg"),
        ("../a.jpg", "PARENT/a.jpg", "PARENT/a.jpg"),
        ("../../../../../../../a.jpg", "/a.jpg", "/a.jpg"),
        ("BASE/x/a.jpg", "BASE/x/a.jpg", "x/a.jpg"),
        ("file://BASE/a.jpg", "BASE/a.jpg", "a.jpg"),
        ("/else/a.jpg", "/else/a.jpg", "/else/a.jpg"),
        ("50%20off #1?.jpg", "BASE/50%20off #1?.jpg", "50%20off #1?.jpg"),
        ("gs://bucket/x/a.jpg", "gs://bucket/x/a.jpg", "gs://bucket/x/a.jpg"),
        ("gs://bucket/a//b.jpg", "gs://bucket/a//b.jpg", "gs://bucket/a//b.jpg"),
        ("s3://bucket/a.jpg", "s3://bucket/a.jpg", "s3://bucket/a.jpg"),
    ],
)
def test_the_key_is_made_of_the_path_below_the_manifest(parse, tmp_path, cell, uri, identity):
    def fill(text):
        return text.replace("BASE", str(tmp_path)).replace("PARENT", str(tmp_path.parent))

    entry = parse_one(parse, f"{IMAGES}{fill(cell)},cat\n")

    assert (entry.uri, entry.id) == (fill(uri), fill(identity))
    assert entry.key == make_key(fill(identity))


def test_a_decomposed_name_is_opened_as_written_and_identified_as_composed(parse, tmp_path):
    decomposed = unicodedata.normalize("NFD", "Brötchen.jpg")

    entry = parse_one(parse, f"{IMAGES}{decomposed},cat\n")

    assert entry.uri == str(tmp_path / decomposed)
    assert entry.id == "Brötchen.jpg"


def test_a_folder_with_a_decomposed_name_does_not_get_into_the_keys(tmp_path):
    folder = tmp_path / unicodedata.normalize("NFD", "Fotos für mich")
    folder.mkdir()
    (folder / "m.csv").write_text(IMAGES + "a.jpg,cat\n")
    (entry,) = parse_rows(open_sources(folder / "m.csv"), ManifestOptions())
    assert entry.id == "a.jpg"


@pytest.mark.parametrize("scheme", ["http", "https", "ftp", "GS", "hdfs"])
def test_a_manifest_does_not_make_workers_call_hosts(parse, scheme):
    reject = parse_one(parse, f"{IMAGES}{scheme}://host/a.jpg,cat\n")
    assert (reject.reason, reject.label) == ("unsupported_scheme", "cat")
    assert reject.detail == f"{scheme}:// is not one of ('gs', 's3')"


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (",cat", "no_image"),
        ("a.jpg,", "empty_label"),
        ('a.jpg,"  "', "empty_label"),
        ('a.jpg,"c\na"', "bad_label"),
        ("a.jpg,c\ta", "bad_label"),
        ("a.jpg,c\u2028a", "bad_label"),
        ("a.jpg," + "c" * 1_001, "bad_label"),
        ("a.jpg,c\0a", "nul_byte"),
        ("a\0.jpg,cat", "nul_byte"),
    ],
)
def test_a_row_that_cannot_be_used_is_rejected(parse, cells, reason):
    reject, entry = parse(f"{IMAGES}{cells}\nb.jpg,dog\n")
    assert isinstance(reject, Reject)
    assert (reject.row, reject.stage, reject.reason) == (1, "manifest", reason)
    assert (entry.row, entry.label) == (2, "dog")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"label": "c\0a"}, "nul_byte"),
        ({"image_uri": "a\0.jpg"}, "nul_byte"),
        ({"split": "TR\0AIN"}, "nul_byte"),
        ({"label": "\ud800"}, "bad_label"),
        ({"image_uri": "\ud800.jpg"}, "not_unicode"),
        ({"note": "\ud800"}, "bad_value"),
        ({"label": None}, "empty_label"),
        ({"image_uri": None}, "no_image"),
        ({"age": 2**63}, "bad_value"),
    ],
)
def test_json_can_hold_what_text_cannot(parse, values, reason):
    row = {"split": "TRAIN", "image_uri": "a.jpg", "label": "cat", "note": "x", "age": 7, **values}
    reject = parse_one(parse, json.dumps(row), name="m.jsonl")
    assert reject.reason == reason


def test_an_id_does_not_hide_a_name_that_is_not_text(parse):
    schema = {"image_uri": "image", "number": "id"}
    text = json.dumps({"image_uri": "\ud800.jpg", "number": "7"})
    reject = parse_one(parse, text, name="m.jsonl", schema=schema)
    assert (reject.reason, reject.id) == ("not_unicode", "7")


def test_a_rejected_row_has_all_that_is_known(parse, tmp_path):
    reject = parse_one(parse, "split,image_uri,label,age\nTEST,a.jpg,,7\n")
    assert reject == Reject(
        row=1,
        uri=str(tmp_path / "a.jpg"),
        split="test",
        label="",
        stage="manifest",
        reason="empty_label",
        detail="the label cell is empty",
        id="a.jpg",
        extra={"age": "7"},
    )


def test_an_unknown_split_of_a_second_file_is_named_by_its_row_there(parse):
    text = "split,image_uri,label\nTRAIN,a.jpg,cat\n"
    with pytest.raises(DataError, match=r"1m\.csv, row 2: unknown split 'x'"):
        parse(text, text + "x,b.jpg,dog\n")


def test_rows_of_several_files_are_numbered_through(parse):
    items = parse(IMAGES + "a.jpg,cat\n,cat\n", IMAGES + "b.jpg,cat\n")
    assert [item.row for item in items] == [1, 2, 3]


def test_a_file_without_rows_beside_one_with_rows_is_fine(parse):
    assert len(parse(IMAGES, IMAGES + "a.jpg,cat\n")) == 1


def test_an_id_is_the_identity_where_there_is_one(parse):
    schema = {"image_uri": "image", "number": "id"}
    with_id, without = parse("image_uri,number\na.jpg,x 1\nb.jpg,\n", schema=schema)
    assert (with_id.id, with_id.key) == ("x 1", make_key("x 1"))
    assert without.id == "b.jpg"


def test_a_label_may_have_a_thousand_characters(parse):
    item = parse_one(parse, f"{IMAGES}a.jpg,{'c' * 1_000}\n")
    assert not isinstance(item, Reject)
    assert item.label == "c" * 1_000


def test_a_label_that_the_map_lacks_is_rejected(parse):
    good, bad = parse(IMAGES + "a.jpg,cat\nb.jpg,dog\n", labels=("cat", "cow"))
    assert good.label == "cat"
    assert (bad.reason, bad.detail) == ("unknown_label", "the label map does not have 'dog'")


@pytest.mark.parametrize(
    ("label", "number"),
    [
        ("7", "7"),
        ("007", "7"),
        ("-1", None),
        ("1.5", None),
        ("x", None),
        ("65535", "65535"),
        ("65536", None),
        ("²", None),
    ],
)
def test_integer_labels_are_numbers(parse, label, number):
    schema = {"image_uri": "image", "label": "integer_label"}
    item = parse_one(parse, f"{IMAGES}a.jpg,{label}\n", schema=schema)
    if number is None:
        assert item.reason == "bad_value"
    else:
        assert not isinstance(item, Reject)
        assert item.label == number


def test_inputs_have_the_types_of_the_schema(parse):
    schema = {"x": "integer", "y": "float", "z": "string", "label": "integer_label"}
    good, empty, bad = parse("x,y,z,label\n7,1.5,a,0\n,,,1\nseven,1,a,1\n", schema=schema)
    assert good.extra == {"x": 7, "y": 1.5, "z": "a"}
    assert (good.uri, good.label) == ("", "0")
    assert empty.extra == {"x": None, "y": None, "z": None}
    assert (bad.reason, bad.detail) == ("bad_value", "column 'x': expected integer, got 'seven'")


@pytest.mark.fault(
    8,
    "a number too large for a record: an integer of more than 64 bits, a float of more than 32",
    "rejected",
    code="`bad_value`",
    hint="write the kinds of all columns with `--columns`: `string` for this one",
)
def test_a_number_that_no_record_holds_is_rejected_by_its_size(parse):
    schema = {"x": "integer", "y": "float"}
    large, high = parse("x,y\n12345678901234567890,1\n1,1e39\n", schema=schema)
    assert large.detail == (
        "column 'x': expected integer, got '12345678901234567890', which does not fit into 64 bits"
    )
    assert high.detail == (
        "column 'y': expected float, got '1e39', which does not fit into a float of 32 bits"
    )
    given = re.search(r"--columns '(.*?)'", format_hint({"bad_value": 1}))[1]
    assert Schema.parse(given).inputs == (("id", Kind.STRING),)
    assert Schema.parse(given).image
    assert parse_one(parse, "x\n12345678901234567890\n", schema={"x": "string"}).extra == {
        "x": "12345678901234567890"
    }


def test_rows_without_image_are_told_apart_by_cells_and_occurrence(parse):
    schema = {"x": "integer", "y": "string"}
    one, two, other = parse("x,y\n1,a\n1,a\n1,b\n", schema=schema)
    again, _, _ = parse("x,y\n1,b\n1,a\n1,a\n", schema=schema)
    assert len({one.key, two.key, other.key}) == 3
    assert again.key == other.key


def test_occurrences_are_counted_through_all_files(parse):
    one, two = parse("x,y\n1,a\n", "x,y\n1,a\n", schema={"x": "integer", "y": "string"})
    assert one.key != two.key


def test_options_travel_as_text():
    options = ManifestOptions(
        schema=Schema.parse({"b": "image", "a": "integer"}),
        labels=("x", "y"),
        split_ratios=SplitRatios(0.5, 0.25, 0.25),
        seed=7,
        exclude="/a/list.txt",
        groups="/a/near.parquet",
        folds=5,
    )
    assert ManifestOptions.from_json(options.to_json()) == options
    assert ManifestOptions.from_json(ManifestOptions().to_json()) == ManifestOptions()


def test_options_check_themselves():
    with pytest.raises(UsageError, match="is empty"):
        ManifestOptions(labels=())
    with pytest.raises(UsageError, match="beside integer labels"):
        ManifestOptions(
            schema=Schema.parse({"i": "image", "l": "integer_label"}), labels=("a", "b")
        )


def test_a_block_is_parsed_once_whatever_is_in_its_rows(parse, monkeypatch):
    seen = []
    parse_columns = KIND.parse

    def count(columns, form):
        seen.append(len(columns[0]))
        return parse_columns(columns, form)

    monkeypatch.setattr(KIND, "parse", count)
    splits = ("train", "test", "eval", "")
    objects = [{"label": "cat", "box": BOX}]
    names = ["http://host/a.jpg", *(f"{n}.jpg" for n in range(1, 600))]
    rows = [
        {"image_uri": name, "split": splits[n % 4], "objects": objects if n % 9 else "no"}
        for n, name in enumerate(names)
    ]
    entries = parse("".join(f"{json.dumps(row)}\n" for row in rows), name="m.jsonl")
    assert sum(isinstance(each, Reject) for each in entries) == 67
    assert seen == [511, 88]
