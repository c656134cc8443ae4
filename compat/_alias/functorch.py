"""``functorch`` in child processes of a program on compat."""

import sys
from importlib import import_module

import_module("torch")
del sys.modules[__name__]
import_module("functorch")
