"""What other tools make of annotations; runs in an environment that has them, and not darkroom.

    python others.py score TRUTH FOUND
    python others.py TOOL FORM PATH TARGET FILE IMAGES [FILE IMAGES ...]

`score` prints the average precision of boxes by pycocotools: of the objects in FOUND, a file of
results, against those in TRUTH. A tool writes the annotations of a set as COCO, into files in
TARGET, or fails; the last line of its error says why. FILE is a part of them, and IMAGES the folder
of its images.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

Part = tuple[Path, Path]


def score(truth: Path, found: Path) -> float:
    """Returns the mean average precision, with as many objects as the fullest image has."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        known = COCO(str(truth))
        images = Counter(each["image_id"] for each in known.dataset["annotations"])
        evaluation = COCOeval(known, known.loadRes(str(found)), "bbox")
        evaluation.params.maxDets = [1, 10, max(images.values())]
        evaluation.evaluate()
        evaluation.accumulate()
    # Thresholds, recalls, classes, sizes, numbers of objects; -1 where a class has no objects.
    precision = evaluation.eval["precision"][:, :, :, 0, -1]
    return float(precision[precision > -1].mean())


def datumaro(form: str, path: Path, target: Path, parts: list[Part]) -> None:
    """Reads the folder of a dataset, in the form that it finds, else in the one that is said."""
    import datumaro as dm

    folder = path if path.is_dir() else path.parent
    folder = folder.parent if folder.name == "annotations" else folder
    forms = dm.Environment().detect_dataset(str(folder)) or [form]
    dm.Dataset.import_from(str(folder), forms[0]).export(str(target), "coco_instances")


def supervision(form: str, path: Path, target: Path, parts: list[Part]) -> None:
    """Reads files of COCO, or folders of YOLO or Pascal VOC."""
    import supervision as sv

    read = sv.DetectionDataset
    for number, (file, images) in enumerate(parts):
        if form == "coco":
            found = read.from_coco(str(images), str(file))
        elif form == "yolo":
            before, _, after = f"{images}/".rpartition("/images/")
            (settings,) = path.glob("*.yaml")
            found = read.from_yolo(str(images), f"{before}/labels/{after}", str(settings))
        else:
            found = read.from_pascal_voc(str(images), str(path / "Annotations"))
        found.as_coco(annotations_path=str(target / f"{number}.json"))


def label_studio_sdk(form: str, path: Path, target: Path, parts: list[Part]) -> None:
    """Converts an export, with a configuration that has its labels."""
    from label_studio_sdk.converter import Converter

    tasks = json.loads(path.read_text())
    results = [r for task in tasks for one in task["annotations"] for r in one["result"]]
    labels = sorted({label for r in results for label in r["value"].get("rectanglelabels", ())})
    values = "".join(f'<Label value="{label}"/>' for label in labels)
    config = (
        '<View><Image name="image" value="$image"/><RectangleLabels name="label" toName="image">'
        f"{values}</RectangleLabels></View>"
    )
    converter = Converter(config, str(path.parent), download_resources=False)
    converter.convert_to_coco(str(path), str(target), str(parts[0][1]), is_dir=False)


def panlabel(form: str, path: Path, target: Path, parts: list[Part]) -> None:
    """Converts files or a folder, also where that loses something."""
    names = {"label_studio": "label-studio", "tf_csv": "tfod", "hugging_face": "hf"}
    program = str(Path(sys.executable).with_name("panlabel"))
    for number, file in enumerate(dict.fromkeys(file for file, _ in parts)):
        command = [program, "convert", "-t", "coco", "-f", names.get(form, form), "--allow-lossy"]
        command += ["-i", str(file), "-o", str(target / f"{number}.json")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            lines = (done.stderr + done.stdout).splitlines()
            sys.exit(next((line for line in lines if "rror" in line), "no message"))


TOOLS = {
    "datumaro": (datumaro, ("coco", "yolo", "voc")),
    "supervision": (supervision, ("coco", "yolo", "voc")),
    "label-studio-sdk": (label_studio_sdk, ("label_studio",)),
    "panlabel": (panlabel, ("coco", "yolo", "voc", "tf_csv", "label_studio", "hugging_face")),
}


def main() -> None:
    """Runs a tool; the last line of the error is the first cause of a failure."""
    name, *arguments = sys.argv[1:]
    if name == "score":
        print(score(*map(Path, arguments)))
        return
    try:
        form, path, target, *rest = arguments
        parts = zip(map(Path, rest[::2]), map(Path, rest[1::2]), strict=True)
        TOOLS[name][0](form, Path(path), Path(target), [*parts])
    except Exception as error:  # noqa: BLE001  any failure is a cell of the table
        cause: BaseException = error
        while inner := cause.__cause__ or cause.__context__:
            cause = inner
        sys.exit(f"{type(cause).__name__}: {str(cause).splitlines()[0]}")


if __name__ == "__main__":
    main()
