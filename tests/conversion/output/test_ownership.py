"""darkroom deletes and replaces only what it can prove it wrote; everything else stops it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from darkroom.cli import main
from darkroom.conversion.convert import convert
from darkroom.conversion.job import ConversionJob
from darkroom.conversion.output import commit, exchange, ownership
from darkroom.conversion.result import TooManyRejectsError
from darkroom.dataset import journal
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.layout import Folders
from darkroom.errors import OutputError, StorageError, UsageError
from darkroom.manifest.fingerprint import fingerprint_source
from darkroom.options.conversion import ConversionOptions
from darkroom.proof.verify import verify

pytestmark = pytest.mark.heavy

SHARDS = {"train": 2, "eval": 1}


def read_tree(folder: Path) -> dict[str, bytes | str]:
    """Returns every file below a folder, hidden ones too; of a link where it leads."""
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def write_images(folder: Path, count: int) -> None:
    """Writes different images; the last one twice, under another name."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        pixels = np.random.default_rng(number).integers(0, 256, (5, 6, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.jpg")
    shutil.copy(folder / f"{count - 1}.jpg", folder / "twin.jpg")


def write_list(folder: Path, count: int, bad: int = 0) -> Path:
    rows = [
        f"{'VALIDATION' if n % 4 == 3 else 'TRAIN'},{n}.jpg,{'ab'[n % 2]}" for n in range(count)
    ]
    rows += ["TRAIN,twin.jpg,a", *(f"TRAIN,gone{n}.jpg,a" for n in range(bad))]
    path = folder / f"list-{bad}.csv"
    path.write_text("\n".join(["split,image_uri,label", *rows]) + "\n")
    return path


def write_journal(output: Path, paths: list[str]) -> Path:
    """Writes the journal of an attempt, as one that has just begun."""
    folders = Folders.of_dataset(str(output), token="0123abcd")
    Path(folders.work).mkdir(parents=True)
    journal.write_journal(folders, paths)
    return Path(journal.journal_path(folders))


def _die(*_: object) -> None:
    raise StorageError("killed")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images, lists of them, and outputs of all kinds."""
    root = tmp_path_factory.mktemp("made")
    write_images(root / "images", 12)
    good, bad = write_list(root / "images", 12), write_list(root / "images", 12, bad=2)
    convert(good, root / "plain", num_shards=SHARDS)
    convert(good, root / "packed", num_shards=SHARDS, options=ConversionOptions(compression="gzip"))
    convert(bad, root / "full", num_shards=SHARDS, max_rejects=0.5)
    with pytest.raises(TooManyRejectsError):
        convert(bad, root / "failed", num_shards=SHARDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit.Commit, "__call__", _die)
        with pytest.raises(StorageError, match="killed"):
            convert(bad, root / "killed", num_shards=SHARDS)
    return root


@pytest.fixture
def source(made: Path) -> Path:
    return made / "images" / "list-0.csv"


@pytest.fixture(scope="module")
def expected(made: Path) -> dict[str, bytes | str]:
    convert(made / "images" / "list-0.csv", made / "expected", num_shards=1, seed=3)
    return read_tree(made / "expected")


KINDS = ["plain", "packed", "full", "failed", "killed"]


@pytest.mark.parametrize(
    ("kind", "place"),
    [*((kind, "exchanged") for kind in KINDS), ("killed", "in place")],
)
def test_what_darkroom_wrote_is_replaced(
    made, source, expected, kind, place, tmp_path, monkeypatch
):
    if place == "in place":
        monkeypatch.setattr(exchange, "can_replace", lambda output_dir: False)
    shutil.copytree(made / kind, tmp_path / "out")
    convert(source, tmp_path / "out", num_shards=1, seed=3, overwrite=True)
    assert read_tree(tmp_path / "out") == expected
    assert os.listdir(tmp_path) == ["out"]


def test_a_failed_run_proves_what_it_wrote(made):
    found = ownership.survey(Folders.of_dataset(str(made / "failed")))
    assert {str(made / "failed" / name) for name in read_tree(made / "failed")} == set(found.ours)


def edit(name: str, change):
    def apply(out: Path) -> list[str]:
        path = out / name
        path.write_bytes(change(path.read_bytes()))
        return [name]

    return apply


def add(*names: str, data: bytes = b"mine"):
    def apply(out: Path) -> list[str]:
        for name in names:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes(data)
        return sorted(names)

    return apply


def link_folder(out: Path) -> list[str]:
    shutil.move(out / "Split-eval", out.parent / "elsewhere")
    (out / "Split-eval").symlink_to(out.parent / "elsewhere")
    return ["Split-eval"]


def break_commit(out: Path) -> None:
    text = (out / "dataset.json").read_text()
    (out / "dataset.json").write_text(text.replace('"rows": 15', '"rows": 16'))


FOREIGN = {
    "a folder in the index": add("index/deep/er/notes.txt"),
    "a hidden file": add("Split-train/.DS_Store"),
    "a split of one's own": add("Split-mine/thesis.txt"),
    "a shard of no commit": add("Split-train/data_tfrecord-00009-of-00010"),
    "a work folder": add(".attempt/notes.txt", ".attempt/0123456789abcdef/notes.txt"),
    "a journal of another kind": add(".attempt/0123abcd/journal.json", data=b'{"mine": 1}'),
    "an unfinished file": add(".part-notes", "index/.part-x"),
    "files of a job": add(".dataflow/temp/x"),
    "own labels": edit("labels.txt", lambda text: text + b"c\n"),
    "a damaged index": edit("index/index-00001-of-00003.parquet", lambda d: d[:-1] + b"?"),
    "corrected rejects": edit(
        "rejects.jsonl", lambda text: text.replace(b"TRAIN", b"TEST", 1)[:-1]
    ),
    "a file in place of a shard": edit(
        "Split-eval/data_tfrecord-00000-of-00001", lambda d: b"mine"
    ),
    "a link to a folder": link_folder,
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_that_is_not_ours_is_foreign(made, kind, tmp_path):
    shutil.copytree(made / "full", tmp_path / "out")
    named = FOREIGN[kind](tmp_path / "out")
    found = ownership.survey(Folders.of_dataset(str(tmp_path / "out")))
    assert [os.path.relpath(path, tmp_path / "out") for path in found.foreign] == named


def test_a_file_that_is_not_ours_stops_before_a_byte(made, source, tmp_path):
    shutil.copytree(made / "full", tmp_path / "out")
    add("Split-train/x", *(f"index/{number:02}" for number in range(11)))(tmp_path / "out")
    before = read_tree(tmp_path)
    with pytest.raises(OutputError) as error:
        convert(source, tmp_path / "out", num_shards=SHARDS, overwrite=True, seed=3)
    files = "12 files that darkroom did not write, or that changed since: Split-train/x"
    shown = "".join(f", index/{number:02}" for number in range(9))
    assert error.value.message == f"{tmp_path}/out holds {files}{shown} and 2 more."
    assert error.value.hint == "Move them elsewhere, or choose another output folder."
    assert read_tree(tmp_path) == before


def test_a_dataset_that_lost_its_commit_is_replaced_when_asked_for(made, source, tmp_path):
    shutil.copytree(made / "full", tmp_path / "out")
    (tmp_path / "out" / "dataset.json").unlink()
    convert(source, tmp_path / "out", num_shards=SHARDS, overwrite=True)
    assert verify(tmp_path / "out").is_sound


def test_a_dataset_with_a_damaged_commit_is_replaced_when_asked_for(made, source, tmp_path):
    """The list of hashes proves its files."""
    shutil.copytree(made / "full", tmp_path / "out")
    break_commit(tmp_path / "out")
    with pytest.raises(OutputError, match=r"holds a dataset whose dataset\.json is damaged"):
        convert(source, tmp_path / "out", num_shards=SHARDS)
    assert not convert(source, tmp_path / "out", num_shards=SHARDS, overwrite=True).already_complete
    assert verify(tmp_path / "out").is_sound


@pytest.mark.parametrize("beside", [".out.darkroom-new", ".out.darkroom-new.old"])
def test_files_in_the_folder_beside_stop_too(made, source, beside, tmp_path):
    shutil.copytree(made / "plain", tmp_path / "out")
    shutil.copytree(made / "full", tmp_path / beside)
    (tmp_path / beside / "notes.txt").write_text("mine")
    before = read_tree(tmp_path)
    with pytest.raises(OutputError, match=rf"changed since: \.\./{beside}/notes\.txt\."):
        convert(source, tmp_path / "out", seed=5, overwrite=True)
    assert read_tree(tmp_path) == before
    # A run that has nothing to do needs nothing to be moved, and moves nothing.
    assert convert(source, tmp_path / "out", num_shards=SHARDS).already_complete
    assert read_tree(tmp_path) == before


def test_folders_and_files_of_our_names_in_a_project_stay(tmp_path, capsys):
    project = tmp_path / "proj"
    for name in ("index/notes.txt", "Split-mine/thesis.txt", "labels.txt"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x\n")
    write_images(project / "images", 2)
    (project / "list.csv").write_text("split,image_uri,label\nTRAIN,images/0.jpg,a\n")
    before = read_tree(tmp_path)
    assert (
        main(["convert", f"{project}/list.csv", "--output-dir", str(project), "--overwrite"]) == 4
    )
    said = "Split-mine/thesis.txt, index/notes.txt, labels.txt"
    printed = " ".join(capsys.readouterr().err.split())
    assert f"3 files that darkroom did not write, or that changed since: {said}." in printed
    assert read_tree(tmp_path) == before


def test_the_source_cannot_be_the_output(folders, tmp_path):
    before = read_tree(tmp_path)
    for output in ("src", "src/../src"):
        with pytest.raises(UsageError, match="is the source itself"):
            convert(folders, tmp_path / output, overwrite=True)
    assert read_tree(tmp_path) == before


@pytest.mark.parametrize("name", ["index", "Split-x/y/a.jpg"])
def test_an_image_where_the_dataset_goes_is_an_error(name, tmp_path):
    write_images(tmp_path / "out" / "images", 2)
    (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(tmp_path / "out/images/0.jpg", tmp_path / "out" / name)
    (tmp_path / "link").symlink_to("out")
    rows = "image_uri,label\nout/images/0.jpg,a\n"
    for path in (f"out/{name}", f"link/{name}"):
        (tmp_path / "list.csv").write_text(f"{rows}{path},b\n")
        before = read_tree(tmp_path)
        with pytest.raises(OutputError, match=rf"changed since: {re.escape(name)}\."):
            convert(tmp_path / "list.csv", tmp_path / "out", overwrite=True, max_rejects=1)
        assert read_tree(tmp_path) == before


def test_images_beside_the_files_of_a_dataset_do_not_matter(tmp_path):
    for name in ("images", "indexes"):
        write_images(tmp_path / "out" / name, 1)
    before = read_tree(tmp_path / "out")
    (tmp_path / "list.csv").write_text("image_uri,label\nout/images/0.jpg,a\n")
    for seed in (0, 1):
        convert(tmp_path / "list.csv", tmp_path / "out", overwrite=True, seed=seed)
        assert before.items() <= read_tree(tmp_path / "out").items()
    assert verify(tmp_path / "out").findings == ()


@pytest.mark.parametrize(
    "name",
    ["dataset.json", "Split-train/data_tfrecord-00001-of-00002"],
)
def test_a_damaged_file_may_be_deleted_and_written_again(made, source, expected, name, tmp_path):
    """As the hints of `darkroom verify` say."""
    shutil.copytree(made / "full", tmp_path / "out")
    path = tmp_path / "out" / name
    path.write_bytes(path.read_bytes()[:-9] + b"?" * 8)
    (finding, *_) = verify(tmp_path / "out").findings
    assert re.search("or delete (it|them) and convert the source again", finding.hint)
    with pytest.raises(OutputError):
        convert(source, tmp_path / "out", num_shards=1, seed=3, overwrite=True)
    path.unlink()
    convert(source, tmp_path / "out", num_shards=1, seed=3, overwrite=True)
    assert read_tree(tmp_path / "out") == expected


@pytest.mark.parametrize("text", [None, f"{'0' * 64}  index/notes.txt\n"])
def test_without_the_list_of_hashes_nothing_beside_the_commit_is_ours(made, source, text, tmp_path):
    shutil.copytree(made / "plain", tmp_path / "out")
    sums = tmp_path / "out" / "SHA256SUMS"
    sums.unlink() if text is None else sums.write_text(text)
    before = read_tree(tmp_path)
    count = 10 + (text is not None)
    with pytest.raises(OutputError, match=f"{count} files that darkroom did not write"):
        convert(source, tmp_path / "out", overwrite=True, seed=3)
    assert read_tree(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "where"),
    [("index/notes.txt", "out"), ("notes.txt", ".out.darkroom-new")],
)
def test_files_that_come_during_a_conversion_stop_the_exchange(
    made, source, expected, name, where, tmp_path, monkeypatch
):
    shutil.copytree(made / "plain", tmp_path / "out")
    own, original = tmp_path / where / name, ConversionJob._convert

    def convert_and_drop(*arguments):
        result = original(*arguments)
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text("mine")
        return result

    arguments = {"num_shards": 1, "seed": 3, "overwrite": True}
    named = os.path.relpath(own, tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(ConversionJob, "_convert", convert_and_drop)
        with pytest.raises(OutputError, match=f"changed since: {re.escape(named)}"):
            convert(source, tmp_path / "out", **arguments)
    assert own.read_text() == "mine"
    assert read_tree(made / "plain").items() <= read_tree(tmp_path / "out").items()
    own.unlink()
    if where != "out":
        assert convert(source, tmp_path / "out", num_shards=SHARDS).already_complete
    convert(source, tmp_path / "out", **arguments)
    assert read_tree(tmp_path / "out") == expected
    assert os.listdir(tmp_path) == ["out"]


def test_files_that_come_at_the_last_moment_stay(made, source, expected, tmp_path, monkeypatch):
    shutil.copytree(made / "plain", tmp_path / "out")
    original = exchange.exchange

    def drop_and_exchange(*locks):
        (tmp_path / "out" / "index" / "notes.txt").write_text("mine")
        original(*locks)

    monkeypatch.setattr(exchange, "exchange", drop_and_exchange)
    convert(source, tmp_path / "out", num_shards=1, seed=3, overwrite=True)
    assert read_tree(tmp_path / "out") == expected
    assert read_tree(tmp_path / ".out.darkroom-new") == {"index/notes.txt": b"mine"}


def test_a_file_that_people_edited_after_failed_runs_stays(made, tmp_path):
    """The second run replaced what the first one left."""
    source = made / "images" / "list-2.csv"
    for _ in range(2):
        with pytest.raises(TooManyRejectsError):
            convert(source, tmp_path / "out")
    with (tmp_path / "out" / "rejects.jsonl").open("ab") as file:
        file.write(b"corrected")
    before = read_tree(tmp_path)
    with pytest.raises(OutputError, match=r"changed since: rejects\.jsonl\."):
        convert(source, tmp_path / "out", overwrite=True, max_rejects=1)
    assert read_tree(tmp_path) == before


@pytest.mark.parametrize(("kind", "name"), [("full", "rejects.jsonl"), ("failed", "labels.txt")])
def test_a_list_in_the_output_is_not_replaced_by_its_own_conversion(made, kind, name, tmp_path):
    shutil.copytree(made / kind, tmp_path / "out")
    (tmp_path / "link").symlink_to("out")
    before = read_tree(tmp_path)
    for folder in ("out", "link"):
        with pytest.raises(UsageError, match=f"{name} would be replaced"):
            convert(tmp_path / folder / name, tmp_path / "out", overwrite=True)
    assert read_tree(tmp_path) == before


def test_a_killed_run_is_resumed_beside_a_file_of_another(made, source, expected, tmp_path):
    shutil.copytree(made / "killed", tmp_path / "out")
    (tmp_path / "out" / "note.txt").write_text("mine")
    convert(source, tmp_path / "out", num_shards=1, seed=3)
    found = read_tree(tmp_path / "out")
    assert found.pop("note.txt") == b"mine"
    assert found == expected


@pytest.mark.parametrize("leads_to", ["out", "empty", "nowhere", "src"])
@pytest.mark.parametrize("how", [{}, {"overwrite": True}, {"update": True}])
def test_nothing_is_written_through_an_output_that_is_a_link(
    made, folders, leads_to, how, tmp_path
):
    shutil.copytree(made / "full", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(leads_to)
    before = read_tree(tmp_path)
    with pytest.raises(OutputError, match=f"{tmp_path}/link is a link, and") as caught:
        convert(folders, tmp_path / "link", **how)
    assert f"{tmp_path}/{leads_to}, or another one" in caught.value.hint
    assert read_tree(tmp_path) == before


def test_the_root_of_the_file_system_is_not_an_output(source):
    with pytest.raises(OutputError, match="is the root of the file system"):
        convert(source, "/", overwrite=True)


def test_a_file_that_only_has_the_name_of_a_lock_stays(made, source, tmp_path):
    shutil.copytree(made / "plain", tmp_path / "out")
    lock = tmp_path / "out" / ".darkroom.lock"
    (tmp_path / "mine").write_text("mine")
    for make in (lambda: lock.write_text("mine"), lambda: lock.symlink_to(tmp_path / "mine")):
        make()
        before = read_tree(tmp_path)
        with pytest.raises(OutputError, match=r"did not write: \.darkroom\.lock"):
            convert(source, tmp_path / "out", seed=3, overwrite=True)
        assert read_tree(tmp_path) == before
        lock.unlink()


@pytest.mark.parametrize("length", [0, 7, -5])
def test_a_journal_that_was_not_finished_is_ours(length, tmp_path):
    path = write_journal(tmp_path / "out", [])
    path.with_name(".part-journal.json").write_text(path.read_text()[:length])
    path.unlink()
    found = ownership.survey(Folders.of_dataset(str(tmp_path / "out")))
    assert (found.foreign, len(found.ours)) == ((), 1)


def test_a_journal_names_nothing_outside_its_output(source, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    write_journal(tmp_path / "out", [f"{tmp_path}/out/../notes.txt", f"{tmp_path}/out/README"])
    (tmp_path / "out" / "README").write_text("mine")
    convert(source, tmp_path / "out", overwrite=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    # Not one of the names that a conversion uses, so nothing makes it darkroom's.
    assert (tmp_path / "out" / "README").read_text() == "mine"


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Images in folders of labels."""
    for label in ("cat", "dog"):
        write_images(tmp_path / "src" / label, 3)
    return tmp_path / "src"


def test_an_output_below_the_images_is_not_part_of_the_source(folders, tmp_path):
    before = fingerprint_source(str(folders))
    first = convert(folders, folders / "records")
    assert fingerprint_source(str(folders)) == before
    (tmp_path / "link").symlink_to("src")
    again = convert(tmp_path / "link", tmp_path / "again")
    assert (again.rows, again.labels) == (first.rows, first.labels) == (8, ("cat", "dog"))
    assert again.fingerprint == first.fingerprint


@pytest.mark.parametrize("state", ["failed", "begun", "damaged"])
def test_an_output_with_the_name_of_a_split_is_not_a_split(made, state, tmp_path):
    shutil.copytree(made / "images", tmp_path / "src" / "train" / "cat")
    shutil.copytree(made / "images", tmp_path / "src" / "test" / "dog")
    output = tmp_path / "src" / "eval"
    if state == "begun":
        write_journal(output, [])
    elif state == "failed":
        shutil.copytree(made / "failed", output)
    else:
        shutil.copytree(made / "plain", output)
        break_commit(output)
    result = convert(tmp_path / "src", tmp_path / "out")
    assert result.labels == ("cat", "dog")
    assert set(result.splits) == {"train", "test"}


def test_images_beside_a_dataset_are_part_of_the_source(folders, tmp_path):
    """A label's folder was taken for the output: its images still count."""
    before = fingerprint_source(str(folders))
    first = convert(folders, folders / "cat", overwrite=True)
    assert (first.rows, first.labels) == (8, ("cat", "dog"))
    assert fingerprint_source(str(folders)) == before
    again = convert(folders, tmp_path / "again")
    assert (again.rows, again.labels) == (8, ("cat", "dog"))


def test_a_dataset_json_of_others_hides_no_images(folders, tmp_path):
    (folders / "cat" / "dataset.json").write_text('{"title": "cats", "licenses": []}')
    (folders / "dog" / ".attempt").mkdir()
    assert convert(folders, tmp_path / "out").rows == 8


def test_what_a_commit_names_is_found_without_reading_shards(made, monkeypatch, tmp_path):
    """The lengths say it: else to replace a dataset would take as long as to read it."""
    from darkroom import storage

    opened = []
    original = storage.open_read
    monkeypatch.setattr(storage, "open_read", lambda p: opened.append(p) or original(p))
    found = ownership.survey(Folders.of_dataset(str(made / "full")))
    assert found.foreign == ()
    assert {str(made / "full" / name) for name in read_tree(made / "full")} == set(found.ours)
    assert read_dataset(str(made / "full")).written > 0
    assert opened
    assert not [path for path in opened if "/Split-" in path]


def test_finished_shards_of_another_conversion_are_deleted_with_a_word(
    made, source, tmp_path, monkeypatch
):
    notes: list[str] = []
    monkeypatch.setattr("darkroom.runtime.progress.note", notes.append)
    shutil.copytree(made / "killed", tmp_path / "out")
    convert(source, tmp_path / "out", num_shards=SHARDS, seed=3)
    [note] = [each for each in notes if "shard" in each]
    count = len(list((made / "killed/.attempt").glob("*/*/shard-*.json")))
    assert note == (
        f"{tmp_path}/out has {count} finished shard{'s' * (count > 1)} of another source, or of "
        "other options, which never became a dataset. They are deleted."
    )


def test_a_conversion_that_goes_on_says_nothing_of_another_one(tmp_path, monkeypatch):
    """Also where it writes a shard again, because an image was rejected."""
    notes: list[str] = []
    monkeypatch.setattr("darkroom.runtime.progress.note", notes.append)
    write_images(tmp_path, 8)
    source = write_list(tmp_path, 8, bad=1)
    options = {"num_shards": SHARDS, "max_rejects": 1}
    with monkeypatch.context() as patch:
        patch.setattr(commit.Commit, "__call__", _die)
        with pytest.raises(StorageError, match="killed"):
            convert(source, tmp_path / "again", **options)
    assert sum(convert(source, tmp_path / "again", **options).rejected.values()) == 1
    assert [each for each in notes if "shard" in each] == []
