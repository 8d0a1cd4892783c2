"""Readers of everything that lists images: CSV, JSONL, Parquet, DataFrames and folders."""
