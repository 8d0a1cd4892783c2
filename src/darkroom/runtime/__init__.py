"""The surroundings of darkroom's work: progress, logs, ordered threads, text for people."""
