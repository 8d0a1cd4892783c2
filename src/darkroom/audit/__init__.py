"""Looks into a finished dataset: is it whole, which images are in it twice, how does it look?"""
