"""The proof of a dataset: is each file there, whole, and what the index says (part: core)."""
