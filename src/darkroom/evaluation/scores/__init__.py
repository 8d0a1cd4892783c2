"""What a model says of images, and the numbers of it."""
