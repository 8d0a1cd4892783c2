"""Options of how a model learns."""
