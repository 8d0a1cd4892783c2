"""One label an image: classification."""
