"""Features of images: a vector of a network for each (part: core).

By them images that look alike are near. A cache keeps them by contents, for every dataset and
training; a table has those of one dataset.
"""
