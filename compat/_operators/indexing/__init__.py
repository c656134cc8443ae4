"""Indexing, sorting, embedding."""
