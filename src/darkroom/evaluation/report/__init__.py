"""The page of a model, and its card in Markdown."""
