"""Checks of what a compiled pipeline holds: no secret, no path of here, no text that changes."""
