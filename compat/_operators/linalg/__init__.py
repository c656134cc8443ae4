"""Products and linear algebra."""
