"""The component ManifestGen."""
