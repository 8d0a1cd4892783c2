"""Checks of what a compiled pipeline holds: nothing secret, no path of this machine."""
