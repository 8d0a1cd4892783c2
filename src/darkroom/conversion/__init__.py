"""From a manifest to a committed dataset."""
