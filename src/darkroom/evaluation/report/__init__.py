"""The result of an evaluation, and what is known of the model: as numbers, a page and a card."""
