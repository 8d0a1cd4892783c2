"""What the benchmarks of training share: sets of images, and commands that are timed and scored."""
