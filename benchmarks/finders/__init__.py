"""What is planted, and other tools that look for it; see `side_by_side_findings.py`."""
