"""The devices that train together, and the loops that train on them."""
