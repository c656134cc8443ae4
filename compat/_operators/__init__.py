"""The operators, by family. A module is imported when a name that it publishes is asked for."""
