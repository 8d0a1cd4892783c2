"""Trainings as they are asked for: by a call, and by TFX's Trainer."""
