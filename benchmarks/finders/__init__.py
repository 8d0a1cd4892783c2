"""Other tools that find near copies and wrong labels; see `side_by_side_findings.py`."""
