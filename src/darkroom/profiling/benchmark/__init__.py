"""`darkroom benchmark input`: ways to read a dataset, measured and compared."""
