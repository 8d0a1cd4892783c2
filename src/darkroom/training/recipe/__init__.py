"""How a model learns: optimizer, loss, the balance of labels; and what would help it further."""
