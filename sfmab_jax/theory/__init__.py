"""What the paper proves, as functions of numbers a simulation measures."""

from sfmab_jax.theory import bounds

__all__ = ["bounds"]
