"""The rows of `benchmarks/input.py`, and the loops and loaders that they compare with."""
