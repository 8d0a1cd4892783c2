"""The loaders of `benchmarks/side_by_side.py`: environments, and a script for each loader."""
