"""The pipeline: one definition, and a thin runner for each place where it runs."""
