"""The common flags and output of several commands."""
