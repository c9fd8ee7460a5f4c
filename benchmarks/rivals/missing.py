"""What a rival raises that cannot be run here."""

__all__ = ["Missing"]


class Missing(Exception):
    """The rival is left out; the message says why and what would bring it in."""
