"""Primitives that carry programs: calls, branches and loops."""

from funcgrad.control.call import call
from funcgrad.control.cond import cond
from funcgrad.control.loops import fori_loop, while_loop
from funcgrad.control.scan import scan
from funcgrad.control.switch import switch

__all__ = ["associative_scan", "call", "cond", "fori_loop", "map", "scan", "switch", "while_loop"]
