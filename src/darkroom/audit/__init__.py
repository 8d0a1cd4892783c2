"""Looks into a finished dataset: its duplicates, and a contact sheet (part: look)."""
