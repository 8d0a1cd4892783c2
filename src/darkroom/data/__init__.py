"""Opens what a user names as data: datasets, TFX Examples or images (part: read).

It loads no TensorFlow.
"""
