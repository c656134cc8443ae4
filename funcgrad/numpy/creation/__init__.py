"""Creating arrays: from values, ranges, matrices, index tricks, and scalar types."""
