"""What the paper proves, as functions of numbers a simulation measures."""

from sfmab_jax.theory import bounds, guarantees, textbook

__all__ = ["bounds", "guarantees", "textbook"]
