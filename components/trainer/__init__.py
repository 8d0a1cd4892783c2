"""The component Trainer."""
