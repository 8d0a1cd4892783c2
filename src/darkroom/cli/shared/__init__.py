"""What several commands share: their flags, and what they print."""
