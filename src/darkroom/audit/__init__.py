"""Looks into a finished dataset: is it whole, what is in it twice, what does it look like?"""
