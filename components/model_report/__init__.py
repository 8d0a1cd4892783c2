"""The component ModelReport."""
