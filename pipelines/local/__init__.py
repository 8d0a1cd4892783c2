"""Runs the pipeline on this machine: pinned inputs, cached outputs, lineage, summary, demo."""
