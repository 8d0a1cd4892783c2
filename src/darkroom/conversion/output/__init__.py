"""The folder that a conversion writes to: what in it is ours, how it is prepared and replaced."""
