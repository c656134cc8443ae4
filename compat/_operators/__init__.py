"""The operators, by family. A module is imported when one of its public names is first accessed."""
