"""Checks of a compiled pipeline's content: no secret, and nothing that a container lacks."""
