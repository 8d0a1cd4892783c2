"""The component Evaluator."""
