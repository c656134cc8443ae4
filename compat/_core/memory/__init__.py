"""Storages, strides, and reading and writing through them."""
