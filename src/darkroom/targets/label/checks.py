"""Checks for one label an image: there are none but those of all kinds."""

from __future__ import annotations

from darkroom.targets.checks import TargetCheck

CHECKS: tuple[TargetCheck, ...] = ()
