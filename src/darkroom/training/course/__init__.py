"""The course of a training: its phases, the time that it may take, and its files."""
