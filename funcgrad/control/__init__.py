"""Primitives that carry programs: calls, branches and loops."""

from funcgrad.control.call import call
from funcgrad.control.cond import cond
from funcgrad.control.loops import fori_loop, while_loop
from funcgrad.control.scan import scan

__all__ = ["call", "cond", "fori_loop", "scan", "while_loop"]
