"""A kind of target that only tests know: a point of an image, which moves with the pixels."""
