"""`--tune`: trainings with other options, to find the best ones."""
