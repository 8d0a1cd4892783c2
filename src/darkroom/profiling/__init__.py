"""What input costs, what limits it, and what other storage would bring."""
