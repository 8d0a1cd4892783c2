"""Writes a validation report: JSON for programs, Markdown for a repository, HTML for people.

The files contain no time, host or path of this machine, so equal datasets give equal reports.
"""

from __future__ import annotations

from darkroom import storage
from darkroom.images.source_images import SourceImages
from darkroom.runtime import progress
from darkroom.runtime.markup import element
from darkroom.storage import ledger
from darkroom.validation.gallery.encode import encode_gallery
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.page import make_report_page
from darkroom.validation.report.pictures import RecordFolders, make_report_pictures

REPORT_JSON = "report.json"
REPORT_MARKDOWN = "report.md"
REPORT_HTML = "report.html"
GALLERY_FILE = "gallery.html"
REPORT_FILES = (REPORT_JSON, REPORT_MARKDOWN, REPORT_HTML)


def write_report(
    report: DatasetReport,
    folder: str,
    records: RecordFolders | None = None,
    sources: SourceImages | None = None,
    *,
    gallery: bool = False,
    elsewhere: str = "",
) -> None:
    """Writes `report.json`, `report.md` and `report.html`.

    Args:
        report: The report.
        folder: The folder; it is made if it does not exist.
        records: Where its records are: pictures are taken from them if they are on a disk.
        sources: Reads the source images, for the other pictures.
        gallery: Whether `gallery.html` is written, too, which needs the records.
        elsewhere: Where the gallery is that is not beside the report, in words: the page may be
            shown in a frame, where a link to another file leads nowhere.

    Raises:
        OutputError: The folder has files of these names that darkroom did not write.
        OSError: The folder cannot be written.
    """
    pictures = make_report_pictures(report, records, sources or SourceImages())
    if pictures.missing:
        progress.note(pictures.missing)
    link = element("a", "All images and findings: the gallery", href=GALLERY_FILE)
    page = make_report_page(report, *pictures, gallery=link if gallery else elsewhere)
    texts = {
        REPORT_JSON: report.to_json(),
        REPORT_MARKDOWN: page.to_markdown(),
        REPORT_HTML: page.to_html(),
    }
    if gallery and records:
        texts[GALLERY_FILE] = encode_gallery(report, records)
    ledger.write_files(folder, {name: text.encode() for name, text in texts.items()})
    if not gallery and ledger.is_listed(folder, GALLERY_FILE):
        # Of an earlier report.
        storage.delete_file(storage.join(folder, GALLERY_FILE))
