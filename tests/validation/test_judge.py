import hashlib
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from darkroom.dataset.manifest import Manifest, read_manifest, write_manifest_info
from darkroom.dataset.rejects import Reject, RejectsWriter
from darkroom.errors import DataError, UsageError
from darkroom.options.validation import VALIDATION_POLICIES, ValidationOptions
from darkroom.targets.checks import list_all_checks
from darkroom.validation.checks import COMMON_CHECKS, DatasetCheck
from darkroom.validation.judge import JudgedFiles, judge_dataset
from darkroom.validation.report.dataset_report import DatasetReport, format_table
from darkroom.validation.report.findings import Anomaly, Finding

FEW = {"min_class_images": 1}
MANIFEST_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("uri", pa.string()),
        ("split", pa.string()),
        ("label", pa.string()),
        ("row", pa.int64()),
    ]
)
INDEX_SCHEMA = pa.schema(
    [
        *MANIFEST_SCHEMA,
        ("sha256", pa.string()),
        ("pixel_hash", pa.string()),
        ("decoded_hash", pa.string()),
        ("height", pa.int64()),
        ("width", pa.int64()),
        ("luminance", pa.float64()),
        ("changes", pa.string()),
    ]
)


def record(row, split, label, content=None, **more):
    uri = more.pop("uri", f"/data/{row}.jpg")
    key = hashlib.blake2b(str(row).encode(), digest_size=16).hexdigest()
    pixels = f"{content if content is not None else f'own {row}'}"
    return {
        "key": key,
        "row": row,
        "uri": uri,
        "split": split,
        "label": label,
        "sha256": f"bytes of {row}",
        "pixel_hash": pixels,
        "decoded_hash": None,
        "height": 10 * row,
        "width": 20,
        "luminance": 100.5,
        "changes": "",
        **more,
    }


def reject(row, reason="missing", split="train", label="cat", stage="convert"):
    uri = f"/data/{row}.jpg"
    return Reject(row, uri, split, label, stage, reason, f"why {row}", uri)


@pytest.fixture
def judge(tmp_path):
    def run(records, rejects=(), *, rows=None, deduplicated=0, lost=(), **options):
        labels = options.pop("labels", sorted({r["label"] for r in records if r["label"]}))
        anomalies = options.pop("anomalies", ())
        root = tmp_path / options.pop("folder", "run")
        # An older index has no perceptual hashes.
        looks = [("perceptual_hash", pa.string())] if options.pop("with_looks", False) else []
        decided = [("ignored", pa.string())] if any("ignored" in each for each in records) else []
        schema = pa.schema([*INDEX_SCHEMA, *looks, *decided])
        inputs = write_inputs(root, records, rejects, rows, deduplicated, labels, lost, schema)
        return judge_dataset(
            JudgedFiles(*inputs, anomalies=anomalies), ValidationOptions(**{**FEW, **options})
        )

    return run


def write_inputs(
    root: Path, records, rejects, rows, deduplicated, labels, lost=(), schema=INDEX_SCHEMA
):
    (root / "index").mkdir(parents=True)
    (root / "manifest").mkdir()
    half = len(records) // 2
    for number, part in enumerate((records[:half], records[half:])):
        table = pa.Table.from_pylist(part, schema=schema)
        pq.write_table(table, root / f"index/index-0000{number}-of-00002.parquet")
    with RejectsWriter(str(root / "rejects.parquet")) as writer:
        for each in rejects:
            writer.add(each)
    wanted = [*records, *lost, *(r._asdict() for r in rejects if r.stage == "convert")]
    unique = {
        each["row"]: {name: each.get(name) for name in MANIFEST_SCHEMA.names} for each in wanted
    }
    table = pa.Table.from_pylist(list(unique.values()), schema=MANIFEST_SCHEMA)
    pq.write_table(table, root / "manifest/manifest.parquet")
    total = len(records) + len(rejects) + deduplicated if rows is None else rows
    manifest = Manifest(
        rows=total,
        deduplicated=deduplicated,
        rejected=0,
        splits={},
        labels=labels,
        inputs={},
        has_images=True,
        has_labels=True,
    )
    write_manifest_info(str(root / "manifest"), manifest)
    return str(root / "index"), str(root / "rejects.parquet"), str(root / "manifest")


def found(report):
    return {finding.check: finding for finding in report.findings}


CLEAN = [
    record(1, "train", "cat"),
    record(2, "train", "dog"),
    record(3, "eval", "cat"),
    record(4, "eval", "dog"),
]


def test_the_report_knows_the_excluded_rows_of_a_manifest(tmp_path):
    inputs = write_inputs(tmp_path / "run", CLEAN, (), None, 3, ["cat", "dog"])
    manifest = replace(read_manifest(inputs[2]), excluded=2)
    write_manifest_info(inputs[2], manifest)
    report = judge_dataset(JudgedFiles(*inputs), ValidationOptions(**FEW))
    assert (report.deduplicated, report.excluded) == (3, 2)
    assert DatasetReport.from_json(report.to_json()) == report


def test_ignored_images_and_pairs_are_in_no_finding(judge):
    def ignore(one, *others):
        keys = [record(row, "", "")["key"] for row in others]
        records[one]["ignored"] = " ".join(keys) or "*"

    look = "0123456789abcdef" * 4
    records = {
        each["row"]: each
        for each in [
            *(record(row, split, "cat", "a") for row, split in ((1, "train"), (2, "eval"))),
            *(record(row, "train", label, "b") for row, label in ((3, "cat"), (4, "dog"))),
            *(record(row, split, "cat", "c") for row, split in ((5, "train"), (6, "eval"))),
            record(7, "eval", "cat", "c"),
            *(record(row, "train", "dog", perceptual_hash=look) for row in (8, 9)),
            record(10, "eval", "dog", perceptual_hash="1" + look[1:]),
            record(11, "train", "cat", perceptual_hash="2" + look[1:]),
        ]
    }

    def judge_all(folder):
        policies = {"quality": "off"}
        report = judge(list(records.values()), with_looks=True, folder=folder, policies=policies)
        pairs = {
            each.check: [(r["row"], r["other_row"]) for r in each.rows] for each in report.findings
        }
        return report, pairs

    report, pairs = judge_all("before")
    assert report.ignored == 0
    assert {check: len(rows) for check, rows in pairs.items()} == {
        "leakage": 2,
        "label_conflicts": 1,
        "duplicates": 1,
        "near_leakage": 2,
        "near_conflicts": 1,
        "near_duplicates": 1,
    }
    ignore(2, 1)  # in two splits
    ignore(4)  # with two labels
    ignore(5, 6)  # the third one stays
    ignore(10, 8)  # and so 9, which looks the same
    report, pairs = judge_all("after")
    assert report.ignored == 4
    assert pairs == {
        "leakage": [(7, 5)],
        "near_leakage": [(10, 11)],
        "near_conflicts": [(8, 11)],
        "near_duplicates": [(8, 9)],
    }
    # They count in everything else.
    assert report.written == 11
    assert "Not shown: 4 images or pairs, as decided." in format_table(report)
    ignore(11)
    assert judge_all("all")[1] == {"leakage": [(7, 5)], "near_duplicates": [(8, 9)]}


def test_clean_dataset_passes(judge):
    report = judge(CLEAN, deduplicated=2)
    assert report.findings == ()
    assert report.blessed
    assert report.verdict == "passed"
    assert (report.rows, report.written, report.num_rejected, report.deduplicated) == (6, 4, 0, 2)
    assert report.splits == {"train": 2, "eval": 2}
    assert report.classes == {"train": {"cat": 1, "dog": 1}, "eval": {"cat": 1, "dog": 1}}
    assert report.labels == ("cat", "dog")
    assert report.histograms["height"].counts[0] == 1
    assert sum(report.histograms["height"].counts) == 4
    assert (report.histograms["height"].low, report.histograms["height"].high) == (10, 40)
    assert report.histograms["width"].counts == (4,)
    assert {sample["label"] for sample in report.samples} == {"cat", "dog"}
    others = {check.name for check in list_all_checks()}
    assert set(report.policies) == set(VALIDATION_POLICIES) - others


def test_leakage_names_both_records(judge):
    twins = [record(5, "train", "cat", "same"), record(6, "eval", "cat", "same")]
    report = judge([*CLEAN, *twins])
    assert report.findings == (
        Finding(
            "leakage",
            "fail",
            1,
            "1 image is in more than one split, so scores on eval or test are too high.",
            "Keep each image in one split: delete its row in the other split. Or list them with "
            "darkroom duplicates DATASET --output FILE, and convert again with --exclude FILE.",
            (
                {
                    "row": 6,
                    "uri": "/data/6.jpg",
                    "split": "eval",
                    "label": "cat",
                    "other_row": 5,
                    "other_uri": "/data/5.jpg",
                    "other_split": "train",
                    "other_label": "cat",
                    "records": 2,
                },
            ),
        ),
    )
    assert not report.blessed
    assert report.verdict == "stopped"


@pytest.mark.parametrize("place", [0, 1])
def test_a_jpeg_and_its_decoded_copies_are_the_same_image(judge, place):
    jpeg = record(5, "train", "cat", "by the fast DCT", decoded_hash="by the accurate DCT")
    again = record(6, "train", "cat", "by the fast DCT", decoded_hash="by the accurate DCT")
    copies = [record(7, "eval", "cat", f"by the {kind} DCT") for kind in ("fast", "accurate")]
    other = record(8, "eval", "cat", "of another", decoded_hash="of another, accurate")
    report = judge([*CLEAN, jpeg, copies[place], other])
    (leak,) = report.findings
    assert (leak.check, leak.count) == ("leakage", 1)
    assert [leak.rows[0][name] for name in ("row", "other_row")] == [7, 5]
    findings = found(judge([*CLEAN, jpeg, again, copies[place]], folder="again"))
    assert {check: finding.count for check, finding in findings.items()} == {
        "leakage": 1,
        "duplicates": 1,
    }


def test_jpegs_with_other_first_hashes_are_one_image_by_their_second(judge):
    twins = [record(row, "train", "cat", decoded_hash="the same") for row in (5, 6)]
    assert found(judge([*CLEAN, *twins]))["duplicates"].count == 1


def test_a_label_conflict_in_one_split_is_reported_once(judge):
    twins = [record(5, "train", "cat", "same"), record(6, "train", "dog", "same")]
    finding = found(judge([*CLEAN, *twins]))["label_conflicts"]
    assert finding.count == 1
    assert finding.message == "1 image has more than one label."
    assert (finding.rows[0]["label"], finding.rows[0]["other_label"]) == ("cat", "dog")
    assert set(found(judge([*CLEAN, *twins], folder="again"))) == {"label_conflicts"}


def test_an_image_with_two_labels_in_two_splits_is_one_finding(judge):
    twins = [record(5, "train", "cat", "same"), record(6, "eval", "dog", "same")]
    twins += [record(7, "train", "dog", "same"), record(8, "train", None, "same")]
    others = [record(row, split, "cat", "a") for row, split in ((9, "train"), (10, "eval"))]
    findings = found(judge([*twins, *others], policies={"quality": "off"}))
    assert {check: finding.count for check, finding in findings.items()} == {
        "leakage": 1,
        "label_conflicts": 1,
    }
    conflict = findings["label_conflicts"]
    assert conflict.message == (
        "1 image has more than one label. Of these, 1 in more than one split: scores are too high."
    )
    # Also what differs in its split alone.
    assert [(row["row"], row["other_row"]) for row in conflict.rows] == [(6, 5), (6, 7), (6, 8)]


@pytest.mark.parametrize("policy", ["warn", "off"])
def test_the_stricter_check_tells_of_an_image_that_both_find(judge, policy):
    twins = [record(5, "train", "cat", "same"), record(6, "eval", "dog", "same")]
    report = judge([*CLEAN, *twins], policies={"label_conflicts": policy})
    [finding] = report.findings
    assert (finding.check, report.blessed) == ("leakage", False)
    assert finding.message.endswith(" Of these, 1 with more than one label: look at them.")


def test_duplicates_are_a_warning_that_counts_the_surplus(judge):
    twins = [record(row, "train", "cat", "same") for row in (5, 6, 7)]
    report = judge([*CLEAN, *twins])
    (finding,) = report.findings
    assert (finding.check, finding.policy, finding.count) == ("duplicates", "warn", 1)
    assert finding.message.endswith("with the same label: 2 records too many.")
    assert [finding.rows[0][name] for name in ("row", "other_row", "records")] == [5, 6, 3]
    assert report.blessed
    assert report.verdict == "passed with warnings"


def test_bytes_are_compared_where_pixels_are_unknown(judge):
    unknown = {"pixel_hash": None, "sha256": "same bytes"}
    twins = [record(5, "train", "cat", **unknown), record(6, "eval", "cat", **unknown)]
    report = judge([*CLEAN, *twins])
    assert set(found(report)) == {"leakage"}
    assert report.num_header_only == 2


def test_records_without_image_are_not_compared(judge):
    none = {"pixel_hash": None, "sha256": None, "height": None, "width": None, "luminance": None}
    report = judge([{**each, **none} for each in CLEAN])
    assert report.findings == ()
    assert report.num_header_only == 0
    assert report.histograms == {}


def test_a_record_without_label_conflicts_with_no_other(judge):
    twins = [record(5, "train", None, "same"), record(6, "train", "dog", "same")]
    assert found(judge([*CLEAN, *twins])) == {}


def test_every_copy_is_in_a_pair_with_the_one_that_may_stay(judge):
    twins = [
        *(record(row, "train", "cat", "same") for row in (5, 6)),
        record(7, "test", "cat", "same"),
        record(8, "eval", "cat", "same"),
        *(record(row, split, "cat", "other") for row, split in ((9, "train"), (10, "eval"))),
        *(record(row, "test", "dog", "third") for row in (11, 12, 13)),
        *(record(20 + at, "train", label, "two") for at, label in enumerate(("cat", "dog", "cat"))),
    ]
    findings = found(judge([*CLEAN, *twins]))
    listed = {
        check: [(row["row"], row["other_row"]) for row in finding.rows]
        for check, finding in findings.items()
        if check in ("leakage", "duplicates", "label_conflicts")
    }
    # First comes a pair of each image.
    assert listed == {
        "leakage": [(7, 5), (10, 9), (7, 6), (7, 8)],
        "duplicates": [(5, 6), (11, 12), (20, 22), (11, 13)],
        "label_conflicts": [(20, 21)],
    }
    assert [findings[check].count for check in listed] == [2, 1, 3]


def test_too_many_rejects_are_a_finding(judge):
    rejects = [reject(5, "truncated"), reject(6), reject(7)]
    finding = found(judge(CLEAN, rejects, max_rejects=0.4))["rejects"]
    assert (finding.policy, finding.count) == ("fail", 3)
    assert finding.message == (
        "3 of 7 rows were rejected (42.86%, allowed 40.00%): missing 2, truncated 1."
    )
    assert finding.rows[0] == {
        "row": 5,
        "uri": "/data/5.jpg",
        "split": "train",
        "label": "cat",
        "reason": "truncated",
        "detail": "why 5",
    }


def test_rejects_within_the_limit_are_only_counted(judge):
    report = judge(CLEAN, [reject(5), reject(6, "ragged_row", stage="manifest")], max_rejects=0.5)
    assert report.findings == ()
    assert report.rejected == {"missing": 1, "ragged_row": 1}
    assert [row["row"] for row in report.rejects] == [5, 6]


def test_accounting_names_lost_and_repeated_rows(judge):
    report = judge(CLEAN, [reject(4)], lost=[record(9, "test", "cat")], rows=5, max_rejects=1)
    (finding,) = report.findings
    assert (finding.check, finding.policy, finding.count) == ("accounting", "fail", 2)
    assert [(row["row"], row["problem"]) for row in finding.rows] == [
        (4, "written or rejected 2 times"),
        (9, "neither written nor rejected"),
    ]


def test_accounting_compares_the_sums(judge):
    (finding,) = judge(CLEAN, rows=9, deduplicated=2).findings
    assert finding.count == 3
    assert (
        "The source has 9 rows, but 4 written + 0 rejected + 2 deduplicated = 6;" in finding.message
    )


def test_splits_and_classes(judge):
    records = [record(1, "train", "cat"), record(2, "train", "dog"), record(3, "test", "cat")]
    findings = found(judge(records, min_class_images=2, expected_labels=("cat", "dog", "eel")))
    assert findings["missing_splits"].rows == ({"split": "eval"},)
    assert findings["missing_splits"].policy == "fail"
    assert findings["missing_classes"].rows == (
        {"split": "test", "label": "dog"},
        {"split": "train, test", "label": "eel"},
    )
    assert findings["missing_classes"].count == 2
    assert findings["missing_classes"].message == "2 classes have no records in a split."
    assert findings["small_classes"].rows == (
        {"split": "train", "label": "cat", "records": 1},
        {"split": "train", "label": "dog", "records": 1},
    )


def test_labels_that_look_like_numbers_are_checked(judge):
    records = [record(1, "train", "1"), record(2, "eval", "1"), record(3, "eval", "42")]
    finding = found(judge(records, labels=["1"]))["unknown_labels"]
    assert finding.rows == ({"row": 3, "uri": "/data/3.jpg", "split": "eval", "label": "42"},)
    finding = found(judge(records, expected_labels=("42",), folder="expected"))["unknown_labels"]
    assert finding.count == 2
    assert finding.message == "2 records have a label outside the expected labels."


def test_anomalies_keep_tfdvs_severity(judge):
    anomalies = (
        Anomaly("eval", "height", "ERROR", "Out-of-range values", "4032 is too large"),
        Anomaly("eval", "format", "WARNING", "New values", "gif"),
    )
    report = judge(CLEAN, anomalies=anomalies)
    assert [(each.policy, each.count) for each in report.findings] == [("fail", 1), ("warn", 1)]
    assert report.findings[0].rows[0]["long"] == "4032 is too large"
    assert judge(CLEAN, anomalies=anomalies, policies={"anomalies": "off"}, folder="off").blessed


def test_policies_decide_what_stops_a_run(judge):
    twins = [record(5, "train", "cat", "same"), record(6, "eval", "cat", "same")]
    report = judge([*CLEAN, *twins], policies={"leakage": "warn"})
    assert report.blessed
    assert report.policies["leakage"] == "warn"
    assert judge([*CLEAN, *twins], policies={"leakage": "off"}, folder="off").findings == ()


def test_hostile_text_is_never_run_or_interpreted(judge):
    evil = "'; DROP TABLE records; --\u202e\x1b[2J"
    twins = [
        record(5, "train", evil, "same", uri=evil),
        record(6, "eval", evil, "same", uri="/data/[a]*?.jpg"),
    ]
    report = judge([*CLEAN, *twins], folder="it's [a] *folder*?")
    assert found(report)["leakage"].rows[0]["other_uri"] == evil
    text = format_table(report)
    assert "\x1b" not in text
    assert "<U+001B>[2J" in text
    assert "<U+202E>" in text


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format_version": 1}'])
def test_json_that_is_not_a_report_is_an_error(text):
    with pytest.raises(DataError, match="not a validation report"):
        DatasetReport.from_json(text)


def test_json_of_another_version_is_an_error(judge):
    text = judge(CLEAN).to_json().replace('"format_version": 1', '"format_version": 7, "more": 1')
    with pytest.raises(DataError, match="version 7, expected 1"):
        DatasetReport.from_json(text)


def test_the_table_lists_ten_rows_of_each_finding(judge):
    rejects = [reject(row) for row in range(10, 22)]
    assert format_table(judge(CLEAN, rejects, policies={"missing_classes": "off"})) == "\n".join(
        [
            "Stopped by 1 finding.",
            "16 rows in the source: 4 written, 12 rejected, 0 deduplicated.",
            "Looked for: equal pixels and small changes; crops and turned copies need features: "
            "option embed, or darkroom embed. Without perceptual hash: 4 images, plain, tiny or "
            "damaged, or of an old dataset.",
            "",
            "FAIL  rejects       12  12 of 16 rows were rejected "
            "(75.00%, allowed 1.00%): missing 12.",
            *(
                f"      row {row} /data/{row}.jpg (train, cat): missing: why {row}"
                for row in range(10, 20)
            ),
            "      and 2 more",
            "      What to do: Fix the rows of rejects.jsonl, "
            "or allow a larger share of rejected rows.",
            "      missing: Relative paths start at the folder of the list: put the file there, or "
            "correct the path.",
        ]
    )


def test_the_table_shows_both_records_of_a_pair(judge):
    twins = [
        record(row, split, "cat", "same") for row, split in ((5, "train"), (6, "eval"), (7, "test"))
    ]
    lines = format_table(judge([*CLEAN, *twins])).splitlines()
    assert (
        "      row 7 /data/7.jpg (test, cat)  =  row 5 /data/5.jpg (train, cat)  (3 records)"
        in lines
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policies": {"leakege": "fail"}}, "Unknown check 'leakege'.*Did you mean leakage"),
        ({"policies": {"leakage": "stop"}}, "Unknown policy of leakage 'stop'.*fail, warn, off"),
        ({"policies": {"accounting": "off"}}, "always stop a run"),
        ({"required_splits": ("validaton",)}, "Unknown required split 'validaton'"),
        ({"max_rejects": 1.5}, "max_rejects is 1.5, expected a number from 0 to 1"),
        ({"max_rejects": float("nan")}, "max_rejects is nan, expected a number from 0 to 1"),
        ({"min_class_images": -1}, "min_class_images is -1"),
        ({"min_class_images": 2.5}, "min_class_images is 2.5, expected a whole number"),
        ({"policies": ["leakage"]}, "policies is not a table of texts"),
    ],
)
def test_options_reject_wrong_values(options, message):
    with pytest.raises(UsageError, match=message):
        ValidationOptions(**options)


def test_missing_inputs_are_named(tmp_path):
    index, rejects, manifest = write_inputs(tmp_path / "a", CLEAN, [], None, 0, ["cat", "dog"])
    with pytest.raises(DataError, match="There is no manifest in"):
        judge_dataset(JudgedFiles(index, rejects, str(tmp_path / "none")))
    with pytest.raises(DataError, match="has no index-"):
        judge_dataset(JudgedFiles(str(tmp_path / "none"), rejects, manifest))
    with pytest.raises(OSError, match=r"none\.parquet"):
        judge_dataset(JudgedFiles(index, str(tmp_path / "none.parquet"), manifest))
    (tmp_path / "rejects.parquet").write_bytes(b"not Parquet, but long enough to have a footer")
    with pytest.raises(DataError, match=r"rejects at .* cannot be used"):
        judge_dataset(JudgedFiles(index, str(tmp_path / "rejects.parquet"), manifest))


@pytest.mark.usefixtures("own_database")
def test_the_database_has_112_mb_and_one_thread(judge, monkeypatch):
    seen = {}

    def check(context):
        for name in ("memory_limit", "threads", "autoinstall_known_extensions", "temp_directory"):
            query = f"SELECT current_setting('{name}')"
            seen[name] = context.connection.execute(query).fetchall()[0][0]
        return ()

    monkeypatch.setitem(COMMON_CHECKS, "leakage", DatasetCheck(check))
    judge(CLEAN)
    assert seen["memory_limit"] == "106.8 MiB"  # 112 MB
    assert seen["threads"] == 1
    assert seen["autoinstall_known_extensions"] is False
    assert Path(seen["temp_directory"]).parent.name.startswith("darkroom-")


# The worst case: each image occurs twice, with two labels, and one row in a thousand was lost.
# Every second image is a JPEG, and the next one was made of it.
@pytest.mark.long
def test_300_000_records_are_validated_within_the_memory_of_the_database(tmp_path):
    index, rejects, manifest = write_inputs(tmp_path, CLEAN[:0], [], 300_000, 0, ["0", "1"])
    rows = """SELECT sha256('key ' || i) AS key, '/a/folder/somewhere/' || i || '.jpg' AS uri,
        if(i % 5 = 0, 'eval', 'train') AS split, (i % 2)::VARCHAR AS label, i AS row,
        sha256('bytes ' || i) AS sha256,
        md5(if(i % 2 = 0, 'first ' || i, 'pixels ' || (i // 2))) AS pixel_hash,
        if(i % 2 = 0, md5('pixels ' || (i // 2)), NULL) AS decoded_hash,
        20 AS height, 20 AS width, 100.5 AS luminance, '' AS changes FROM range(300000) rows(i)"""
    for part in range(2):
        path = f"{index}/index-0000{part}-of-00002.parquet"
        duckdb.sql(f"COPY ({rows} WHERE i % 1000 > 0 AND i % 2 = {part}) TO '{path}'")
    columns = ", ".join(MANIFEST_SCHEMA.names)
    duckdb.sql(f"COPY (SELECT {columns} FROM ({rows})) TO '{manifest}/manifest.parquet'")

    findings = found(judge_dataset(JudgedFiles(index, rejects, manifest)))
    assert {check: finding.count for check, finding in findings.items()} == {
        "accounting": 300,
        "label_conflicts": 149_700,
    }
    assert "Of these, 59,700 in more than one split" in findings["label_conflicts"].message
    assert [row["row"] for row in findings["accounting"].rows] == list(range(0, 10_000, 1_000))
    assert findings["accounting"].rows[1]["uri"] == "/a/folder/somewhere/1000.jpg"
    pairs = [(row["row"], row["other_row"]) for row in findings["label_conflicts"].rows[:6]]
    # The one of eval comes first.
    assert pairs == [(2, 3), (5, 4), (6, 7), (8, 9), (10, 11), (12, 13)]
    assert findings["label_conflicts"].rows[1] == {
        "row": 5,
        "uri": "/a/folder/somewhere/5.jpg",
        "split": "eval",
        "label": "1",
        "other_row": 4,
        "other_uri": "/a/folder/somewhere/4.jpg",
        "other_split": "train",
        "other_label": "0",
        "records": 2,
    }


def test_a_damaged_index_is_reported_as_an_error_of_the_data(tmp_path):
    inputs = write_inputs(tmp_path / "a", CLEAN, [], None, 0, ["cat", "dog"])
    index = tmp_path / "a/index/index-00001-of-00002.parquet"
    data = index.read_bytes()
    index.write_bytes(data[:4] + b"\xff" * 400 + data[404:])
    with pytest.raises(DataError, match="damaged"):
        judge_dataset(JudgedFiles(*inputs))


def look(number: int) -> str:
    return hashlib.sha256(f"{number}".encode()).hexdigest()


def make_looks(num_records: int, num_contents: int, num_looks: int) -> list[dict]:
    """Records of which the splits alternate, with repeated contents and looks."""
    return [
        record(
            row,
            ("train", "eval")[row % 2],
            "cat",
            f"{row % num_contents}",
            perceptual_hash=look(row % num_contents % num_looks),
        )
        for row in range(1, num_records + 1)
    ]


@pytest.mark.fault(
    75,
    "the same image very often",
    "compared once",
    code="finding",
)
def test_many_equal_images_are_one_finding_and_no_near_copies(judge):
    policies = {"leakage": "warn", "quality": "off"}
    report = judge(make_looks(5_000, 1, 1), policies=policies, with_looks=True)
    assert {check: each.count for check, each in found(report).items()} == {
        "leakage": 1,
        "duplicates": 2,
    }


def test_many_images_of_one_hash_are_compared_once(judge):
    report = judge(make_looks(3_000, 1_001, 1), policies={"leakage": "warn"}, with_looks=True)
    findings = found(report)
    assert {check: findings[check].count for check in findings if "near" in check} == {
        "near_leakage": 1,
        "near_duplicates": 1,
    }
    [row] = findings["near_leakage"].rows
    assert (row["difference"], row["split"] != row["other_split"]) == (0, True)
    [row] = findings["near_duplicates"].rows
    assert (row["row"] - row["other_row"]) % 1_001 != 0


@pytest.mark.fault(
    75,
    "nearly all images look alike, as scans of an empty form",
    "not all pairs are compared, and the finding says so",
    code="finding",
    hint="",
)
def test_images_that_all_look_alike_are_not_all_compared(judge, monkeypatch):
    monkeypatch.setattr("darkroom.images.near_pairs._MAX_PAIRS", 50)
    base = int(look(1), 16)
    records = [
        record(row, ("train", "eval")[row % 2], "cat", perceptual_hash=f"{base ^ row:064x}")
        for row in range(1, 301)
    ]
    findings = found(judge(records, with_looks=True))
    for check in ("near_leakage", "near_duplicates"):
        message = findings[check].message
        assert message.endswith("So many images look alike that not all pairs were compared.")
        assert findings[check].count > 150
        assert len(findings[check].rows) == findings[check].count
        assert findings[check].rows[0]["difference"] == 1


def test_the_decoded_copy_of_a_jpeg_is_the_same_image_and_not_a_near_copy(judge):
    jpeg = record(5, "train", "cat", "fast", decoded_hash="accurate", perceptual_hash=f"{1:064x}")
    copy = record(6, "eval", "cat", "accurate", perceptual_hash=f"{3:064x}")
    near = record(7, "eval", "dog", "other", perceptual_hash=f"{7:064x}")
    findings = found(judge([*CLEAN, jpeg, copy, near], with_looks=True))
    assert [(check, findings[check].count) for check in findings] == [
        ("leakage", 1),
        ("near_leakage", 1),
        ("near_conflicts", 1),
    ]
    [row] = findings["near_leakage"].rows
    assert (row["row"], row["other_row"], row["difference"]) == (5, 7, 2)
