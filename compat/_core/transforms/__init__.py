"""The modes and the stack of transforms that an operation runs in."""
