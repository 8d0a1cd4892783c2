"""The result of an evaluation, and the facts about the model: as numbers, a page and a card."""
