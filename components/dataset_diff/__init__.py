"""The component DatasetDiff."""
