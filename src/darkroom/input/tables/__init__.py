"""Tables of numbers as batches."""
