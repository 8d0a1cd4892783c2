"""Questions to a finished dataset: is it whole, what does it hold twice, what does it look like?"""
