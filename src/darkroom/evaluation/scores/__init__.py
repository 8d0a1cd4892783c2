"""The scores of a model for images, and their numbers."""
