"""Reading and writing at places, sorting, embedding."""
