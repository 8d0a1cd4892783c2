"""Opens what a user names as data: datasets, TFX Examples or images. It loads no TensorFlow."""
