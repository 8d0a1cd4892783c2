"""The pipeline: one definition, and a thin runner for each place that runs it."""
