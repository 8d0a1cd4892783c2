"""What runs while darkroom works: progress, logs, ordered threads, text for people."""
