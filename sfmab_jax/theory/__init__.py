"""What the paper proves, as functions of numbers a simulation measures."""

from sfmab_jax.theory import bounds, certificates, guarantees, textbook

__all__ = ["bounds", "certificates", "guarantees", "textbook"]
