"""Primitives that carry programs: calls, branches and loops."""

from funcgrad.control.call import call
from funcgrad.control.cond import cond
from funcgrad.control.scan import scan

__all__ = ["call", "cond", "scan"]
