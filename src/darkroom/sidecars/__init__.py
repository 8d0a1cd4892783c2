"""Small files by which readers of other frameworks find the records (part: make)."""
