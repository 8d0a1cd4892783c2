"""What keeps the files of a dataset together: their hashes, the commit's form, and one state."""
