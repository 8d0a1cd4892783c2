"""The head for several labels an image."""

from __future__ import annotations
