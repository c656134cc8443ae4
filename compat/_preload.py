"""``torch`` in ``multiprocessing``'s fork server, if ``set_forkserver_preload`` names it."""

from importlib import import_module

from compat.install import install

install()
import_module("torch")
