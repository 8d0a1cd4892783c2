import pytest

from darkroom.manifest.formats.voc.annotation import parse_annotation

OBJECT = """
<object><name>cat</name><pose>Left</pose><truncated>1</truncated><difficult>1</difficult>
<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30</xmax><ymax>40</ymax></bndbox></object>
"""


def parse(text, origin=0):
    data = text if isinstance(text, bytes) else f"<annotation>{text}</annotation>".encode()
    return parse_annotation(data, "a.xml", origin)


def test_what_labelimg_writes():
    found = parse(
        "<folder>x</folder><filename>a.jpg</filename><path>/home/me/a.jpg</path>"
        "<size><width>640</width><height>480</height><depth>3</depth></size>"
        f"<segmented>0</segmented>{OBJECT}"
    )
    assert found[:3] == ("a.jpg", 640.0, 480.0)
    assert found.objects == [
        {"id": "1 of a.xml", "label": "cat", "box": [1.0, 2.0, 30.0, 40.0], "difficult": "1"}
    ]


@pytest.mark.parametrize(
    ("name", "value", "box"),
    [
        ("rotation", "90.0", [35, 10, 45, 50]),
        ("rotation", "0.0", [20, 25, 60, 35]),
        ("rotation", "left", [20, 25, 60, 35]),
        ("angle", "90.0", [20, 25, 60, 35]),
    ],
)
def test_a_box_that_cvat_turned_is_the_one_around_it(name, value, box):
    corners = "<xmin>20</xmin><ymin>25</ymin><xmax>60</xmax><ymax>35</ymax>"
    attribute = f"<attribute><name>{name}</name><value>{value}</value></attribute>"
    (found,) = parse(
        f"<object><name>boat</name><bndbox>{corners}</bndbox>"
        f"<attributes><attribute><name>truncated</name><value>0</value></attribute>{attribute}"
        "</attributes></object>"
    ).objects
    assert found["box"] == pytest.approx(box)
    assert ("rotation" in found) == (box[0] == 35)


def test_children_are_read_by_name_and_may_be_floats():
    # Roboflow writes them in another order than VOC.
    (found,) = parse(
        "<object><bndbox><xmin> 1.5 </xmin><xmax>30.25</xmax>"
        "<ymin>2</ymin><ymax>4e1</ymax></bndbox>"
        "<polygon><x1>9</x1></polygon><name>\n cat &amp; dog </name></object>"
    ).objects
    assert (found["label"], found["box"]) == ("cat & dog", [1.5, 2.0, 30.25, 40.0])
    assert found["difficult"] == "0"


def test_parts_of_an_object_are_not_objects():
    part = "<part><name>head</name><bndbox><xmin>5</xmin></bndbox></part>"
    (found,) = parse(f"<object>{part}{OBJECT.strip().removeprefix('<object>')}").objects
    assert (found["label"], found["box"]) == ("cat", [1.0, 2.0, 30.0, 40.0])


def test_origin_one_is_subtracted_from_all_corners():
    assert parse(OBJECT, origin=1).objects[0]["box"] == [0.0, 1.0, 29.0, 39.0]


@pytest.mark.fault(112, "a size of 0, or none", "that of the image is taken")
@pytest.mark.parametrize("size", ["", "<width>0</width><height>0</height>", "<width>5</width>"])
def test_a_size_that_is_not_known_is_that_of_the_image(size):
    assert parse(f"<size>{size}</size>")[1:3] == (None, None)
    assert parse("<size><width>x</width><height>9</height></size>")[1:3] == (None, None)
    assert parse("<size><width>inf</width><height>9</height></size>")[1:3] == (None, None)


def test_an_annotation_without_objects_is_of_an_image_without_them():
    assert parse("<filename>a.jpg</filename>") == ("a.jpg", None, None, [])


@pytest.mark.fault(
    112,
    "an object without a box, or with corners that are not numbers",
    "the object is rejected",
    code="`bad_box`",
)
@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("<name>a</name>", "it has no bndbox, but name"),
        (
            "<name>a</name><robndbox><cx>5</cx></robndbox>",
            "it has no bndbox, but name, robndbox",
        ),
        ("<name>a</name><bndbox/>", "its corners are ['', '', '', '']"),
        (
            "<bndbox><xmin>1,5</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox>",
            "its corners are ['1,5', '2', '3', '4']",
        ),
    ],
)
def test_an_object_without_a_box_is_lost_alone(text, detail):
    lost, kept = parse(f"<object>{text}</object>{OBJECT}").objects
    assert lost["fault"].args == ("bad_box", detail)
    assert (lost["id"], kept["id"]) == ("1 of a.xml", "2 of a.xml")
    assert "fault" not in kept


@pytest.mark.fault(112, "an encoding other than UTF-8 that the file declares", "it is read")
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "iso-8859-1"])
def test_other_encodings(encoding):
    declared = '<?xml version="1.0" encoding="iso-8859-1"?>' if encoding == "iso-8859-1" else ""
    text = f"{declared}<annotation><filename>é.jpg</filename></annotation>"
    assert parse(text.encode(encoding)).filename == "é.jpg"


BOMB = '<!DOCTYPE a [<!ENTITY b "x"><!ENTITY c "&b;&b;">]><annotation>&c;</annotation>'
DTD = '<!DOCTYPE a SYSTEM "file:///etc/passwd"><annotation/>'


@pytest.mark.fault(
    112,
    "an XML file that is cut, damaged, nested deeply or something else; a document type",
    "its image is rejected",
    code="`bad_annotation`",
)
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (BOMB.encode(), "it has a document type"),
        (BOMB.encode("utf-16"), "it has a document type"),
        (DTD.encode(), "it has a document type"),
        (b"", "it is not XML: no element found"),
        (b"<annotation>\n<object>", "it is not XML: no element found: line 2"),
        (b"<annotation>\n<a>\n</b></annotation>", "it is not XML: mismatched tag: line 3"),
        (b"<annotation>&other;</annotation>", "it is not XML: undefined entity"),
        ("<annotation>é</annotation>".encode("latin-1"), "it is not XML: not well-formed"),
        (b"<annotation>\0</annotation>", "it is not XML: not well-formed"),
        (b"<annotation>" * 100_000, "it is not XML: no element found"),
        (b"<annotations><image/></annotations>", "it has <annotations>, expected <annotation>"),
        (b'<?xml version="1.0" encoding="gb2312"?><annotation/>', "multi-byte encodings"),
        (b'<?xml version="1.0" encoding="what"?><annotation/>', "unknown encoding"),
    ],
)
def test_what_is_not_an_annotation_is_refused(data, said):
    with pytest.raises(ValueError, match=said):
        parse(data)
