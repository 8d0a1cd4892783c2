"""Measures what input costs, what limits it, and other ways to store it (part: read)."""
