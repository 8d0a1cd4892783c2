"""Measures the cost of input, its limit, and how much faster it would be stored differently."""
