"""Features of images: a vector for each, from a network, by which images that look alike are near.

A cache keeps them by contents, for every dataset and training; a table has those of one dataset.
"""
