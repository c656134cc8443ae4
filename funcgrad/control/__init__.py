"""Primitives that carry programs: calls and loops."""

from funcgrad.control.call import call
from funcgrad.control.scan import scan

__all__ = ["call", "scan"]
