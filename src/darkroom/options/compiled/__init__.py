"""Checks of a compiled pipeline's content: no secret, no path of here, no text that changes."""
