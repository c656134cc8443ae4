"""Modes and subclasses that operators are dispatched to, and the overloads they are shown."""
