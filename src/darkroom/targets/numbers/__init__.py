"""Numbers to predict from an image: regression."""
