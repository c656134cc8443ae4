"""Operators of sparse tensors."""
