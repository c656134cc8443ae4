"""What tensors are described with: dtypes, devices, sizes, memory formats; and errors."""
