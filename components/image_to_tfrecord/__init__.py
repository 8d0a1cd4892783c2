"""The component ImageToTFRecord."""
