"""Operations on images in a TensorFlow graph."""
