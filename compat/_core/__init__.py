"""The mechanism below PyTorch's names: memory, tensors, the backward engine, operators' plans, dispatch."""
