"""The component ImageValidator."""
