"""The head for numbers: a linear layer on features of parts of an image."""

from __future__ import annotations
