"""The interpreters: one file each."""
