"""The formats of saved files."""
