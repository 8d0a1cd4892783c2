"""The proof of a dataset: is each file of it there, whole, and what the index says of it?"""
