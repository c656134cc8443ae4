"""What several processes and devices gain, and what they exchange."""
