"""Checks of what a compiled pipeline holds: nothing secret, and no path of this machine."""
