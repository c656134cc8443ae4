"""Settings of the process."""
