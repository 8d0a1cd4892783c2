"""Validates a dataset by its index, and writes the report (part: look)."""
