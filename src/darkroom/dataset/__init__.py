"""The folder of a dataset: names and forms of files, keys, splits, labels, columns (part: core)."""
