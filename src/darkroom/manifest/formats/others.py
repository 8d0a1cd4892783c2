"""The forms of annotated images that darkroom knows and does not read, with what to do instead."""

from __future__ import annotations

from darkroom.manifest.formats.form import AnnotationForm
from darkroom.manifest.sources.evidence import has_keys


def _write_coco(name: str, source: str = "{argument}") -> str:
    """Returns how to write a form as COCO, by its name in panlabel, which knows dozens."""
    return (
        "Write it as COCO, and convert coco.json:\n  pip install panlabel\n"
        f"  panlabel convert -f {name} -t coco -i {source} -o coco.json"
    )


_ROWS = '  rows = [json.loads(line) for line in open("{path}")]\n'

_CVAT = AnnotationForm(
    "a file of annotations of CVAT",
    lambda found: "<annotations>" in found.text,
    "Export the task from CVAT again, as COCO 1.0 with its images, and convert that.",
    mark="<",
)
_LABELME = AnnotationForm(
    "an annotation of Labelme", has_keys("shapes", "imagePath"), _write_coco("labelme", "{folder}")
)
_VIA = AnnotationForm(
    "a file of annotations of VGG Image Annotator",
    has_keys("filename", "regions"),
    _write_coco("via"),
)
_CREATE_ML = AnnotationForm(
    "a file of annotations of Create ML",
    has_keys("annotations", "coordinates"),
    _write_coco("create-ml"),
)
_FIFTYONE = AnnotationForm(
    "a file of annotations of FiftyOne",
    has_keys("classes", "labels", "bounding_box"),
    "Write it as COCO, and convert that folder:\n"
    '  folder, types = os.path.dirname("{path}"), fiftyone.types\n'
    "  data = fiftyone.Dataset.from_dir(folder, types.FiftyOneImageDetectionDataset)\n"
    '  data.export("coco", dataset_type=types.COCODetectionDataset)',
)
JSON_LINES = AnnotationForm(
    "JSON Lines",
    lambda found: isinstance(found.first_value, dict),
    "Give it the ending .jsonl.",
)
JSON_ARRAY = AnnotationForm(
    "an array of JSON",
    lambda found: found.text.lstrip().startswith("[") and bool(found.keys),
    "Write JSON Lines, one object a line: "
    'frame.to_json("list.jsonl", orient="records", lines=True).',
)
OTHERS = (
    _CVAT,
    _LABELME,
    _VIA,
    _CREATE_ML,
    _FIFTYONE,
    AnnotationForm(
        "an export of Label Studio as JSON-MIN",
        has_keys("annotator", "annotation_id"),
        "Export it as JSON, which has all of the annotations.",
    ),
    AnnotationForm(
        "an import file of Vertex AI, but not one object a line",
        has_keys("imageGcsUri"),
        'Write it so:\n  rows = json.load(open("{path}"))\n'
        "  rows = rows if isinstance(rows, list) else [rows]\n"
        '  open("list.jsonl", "w").write("\\n".join(map(json.dumps, rows)))',
    ),
    AnnotationForm(
        "a manifest of SageMaker with classes",
        lambda found: {"source-ref", "class-name"} <= found.keys,
        f"Write its lines flat:\n{_ROWS}"
        '  flat = [{"image_uri": row["source-ref"], "label": each["class-name"]} for row in rows '
        'for name, each in row.items() if name.endswith("-metadata")]\n'
        '  pandas.DataFrame(flat).to_csv("flat.csv", index=False)',
    ),
    AnnotationForm(
        "a manifest of SageMaker with boxes",
        has_keys("source-ref", "image_size"),
        _write_coco("sagemaker"),
    ),
    AnnotationForm(
        "a file of TFRecords with images already",
        lambda found: "image/encoded" in found.text,
        "tf.data.TFRecordDataset reads it. darkroom.load reads only a folder that darkroom wrote: "
        "to get one, convert the images and the annotations that this file was made from.",
        mark="\0",
    ),
    JSON_LINES,
    JSON_ARRAY,
)
