"""The folder that a conversion writes to: which files are ours, how it is prepared and replaced."""
