"""Conversion by Apache Beam: its transforms, its runners, Dataflow."""
