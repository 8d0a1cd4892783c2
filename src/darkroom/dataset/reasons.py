"""What to do about a rejected row, by its reason code."""

from __future__ import annotations

from collections.abc import Mapping

HINTS: Mapping[str, str] = {
    "animated": "Give one frame of it as a file of its own.",
    "bad_label": "Write the label without control and invisible characters, 1,000 at most.",
    "bad_value": "Correct the cell, or give the column another kind with --columns.",
    "conflict": "Keep one row for the image (or id), with the right label and split.",
    "corrupt_transfer": "Copy the image again: what arrived is not what the store says it holds.",
    "decoder_crash": "Save the image again with another program.",
    "decoder_memory": "Save the image again, smaller.",
    "decoder_timeout": "Save the image again with another program.",
    "empty": "Copy the file again: it has no bytes.",
    "empty_label": "Give the row a label.",
    "link_loop": "Make the link lead to a file.",
    "missing": "Relative paths start at the folder of the list: put it there, or mend the paths.",
    "multi_label": "Give the image one label.",
    "no_image": "Give the row the path of an image.",
    "not_a_file": "Name a file.",
    "not_an_image": "Get the image itself: this is another kind of file under its name.",
    "not_unicode": "Rename the file in UTF-8.",
    "nul_byte": "Remove the NUL byte; it often comes from a file that was cut off or is UTF-16.",
    "outside_layout": "Put each image into a folder that is named after its label, as in "
    "cat/1.jpg, or <split>/<label>/<file>; or give a list of images and labels.",
    "outside_root": "Move it below an allowed folder, or allow its folder with --allowed-root.",
    "permission_denied": "Grant the right to read it.",
    "ragged_row": "Give the row as many cells as the header; quote cells that hold commas.",
    "repeated_header": "Remove the line: it comes from joining files that each have a header.",
    "too_large": "Give a smaller image.",
    "truncated": "Copy the file again: its end is missing.",
    "undecodable": "Save the image again: it is damaged.",
    "unknown_label": "Correct the label, or add it to the label map.",
    "unreadable": "See the detail of the row for what the system says.",
    "unsupported_format": "Save the image as JPEG or PNG.",
    "unsupported_scheme": "Download the images, or name them by gs:// or s3://.",
    "windows_path": "Write paths with / and relative to the folder of the list.",
}


def format_hint(rejected: Mapping[str, int]) -> str:
    """Returns what to do about the most frequent reason; empty when nothing is known.

    Args:
        rejected: Number of rejected rows by reason code.
    """
    if not rejected:
        return ""
    reason = max(sorted(rejected), key=lambda name: rejected[name])
    return f"{reason}: {HINTS[reason]}" if reason in HINTS else ""
