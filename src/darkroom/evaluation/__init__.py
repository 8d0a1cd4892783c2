"""How good a trained model is: numbers, a page, a model card; predictions (part: learn)."""
