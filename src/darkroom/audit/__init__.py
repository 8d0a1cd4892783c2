"""Looks into a finished dataset: which images are in it twice, and how does it look?"""
