"""Creating arrays: from values, ranges, matrices, concatenation in brackets, and scalar types."""
