"""What is asked of an engine itself, before and beside Beam: its version, its jobs, its jars."""
