"""Services for a run of darkroom: progress, logs, ordered threads, text for people (part: core)."""
