"""Primitives that carry programs: calls now, loops and branches by the same pattern."""

from funcgrad.control.call import call

__all__ = ["call"]
