"""Sets of annotations, read and made in plain ways; see `benchmarks/annotations.py`."""
