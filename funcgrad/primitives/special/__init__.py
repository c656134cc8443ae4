"""The primitives of special functions, and the series and tables that compute them."""
