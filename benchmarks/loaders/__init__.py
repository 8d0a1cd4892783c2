"""What `benchmarks/side_by_side.py` compares with: environments, and a script for each loader."""
