"""From the bytes of an image file to the bytes that a record stores (part: core)."""
