"""``functorch`` in processes that a program on compat starts, as ``torch`` beside it."""

import sys
from importlib import import_module

import_module("torch")
del sys.modules[__name__]
import_module("functorch")
