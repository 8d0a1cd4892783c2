"""Writing shards: reading images, encoding records, one file after the other."""
