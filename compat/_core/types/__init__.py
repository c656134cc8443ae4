"""Types that describe tensors: dtypes, devices, sizes, memory formats; and errors."""
