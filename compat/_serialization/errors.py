"""Errors of damaged files."""

import pickle


class CorruptFileError(RuntimeError, pickle.UnpicklingError):
    """A damaged or inconsistent file; the message names it and the record in it."""


class CorruptPickleError(CorruptFileError):
    """A malformed pickle in such a file, or one with objects that a file may not contain."""
