"""How a model learns: optimizer, loss, the balance of labels; and hints for the next training."""
