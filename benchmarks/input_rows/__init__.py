"""The rows of `benchmarks/input.py`, and what they compare with."""
