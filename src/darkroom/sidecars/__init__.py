"""Small files by which readers of other frameworks find the records, or describe them."""
