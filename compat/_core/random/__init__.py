"""The engine of random numbers, with PyTorch's stream and states, and generators of them."""
