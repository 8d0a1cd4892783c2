"""What a notebook shows: the results of calls, and their progress while a cell runs."""
