"""The component ModelRegistrar."""
