"""``torch`` in the server that ``multiprocessing`` forks processes from, where ``set_forkserver_preload`` names it."""

from importlib import import_module

from compat.install import install

install()
import_module("torch")
