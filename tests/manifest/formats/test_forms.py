"""Each format has one home, which is found by its name and loads no reader."""

import subprocess
import sys

from darkroom.manifest.formats import list_formats, load_format
from darkroom.options.source import AUTO_FORMAT, SOURCE_FORMATS
from darkroom.runtime import by_name

KNOWS = """
import sys
from darkroom.manifest.formats import find_form
from darkroom.manifest.sources.evidence import Evidence
assert find_form(Evidence("image_uri,label\\na.jpg,cat")) is None
names = sorted(each for each in sys.modules if each.startswith("darkroom.manifest.formats."))
print(*names)
"""


def test_each_name_has_a_format_whose_readers_exist():
    for name in SOURCE_FORMATS:
        if name != AUTO_FORMAT:
            form = load_format(name)
            places = [*filter(None, (form.of_file, form.of_folder))]
            assert places
            assert all(map(callable, map(by_name.load_place, places)))
    assert len({form.title for form in list_formats()}) == len(SOURCE_FORMATS) - 1


def test_a_list_needs_no_reader_of_annotations():
    shown = subprocess.check_output([sys.executable, "-c", KNOWS], text=True)
    names = {name.removeprefix("darkroom.manifest.formats.") for name in shown.split()}
    assert names == {*SOURCE_FORMATS, "form", "others"} - {AUTO_FORMAT}
