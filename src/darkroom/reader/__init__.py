"""Batches from the records of a dataset in NumPy and PyTorch, without TensorFlow (part: read)."""
