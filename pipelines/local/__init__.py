"""Runs on this machine."""
