"""What people decided about the images of a dataset, for the next conversion (part: make)."""
