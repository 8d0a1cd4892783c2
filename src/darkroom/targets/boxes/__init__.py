"""Boxes of objects, each with a class: what detectors learn."""
