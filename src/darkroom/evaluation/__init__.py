"""How good a trained model is: numbers, a page and a model card; and its predictions."""
