"""Caches the features that a frozen base computes for each image, and trains on them."""
