"""Judges a dataset from its index, and writes the report."""
