"""Measures what input costs, what limits it, and how much faster it would be stored differently."""
