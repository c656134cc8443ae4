"""Processes that work together: the mechanism behind ``torch.distributed``.

``transport`` reaches other processes and exchanges NumPy's arrays; ``groups`` holds the process groups, and
``collectives``, ``point_to_point`` and ``objects`` do it with tensors and with what can be pickled. It is below ``nn``,
whose ``DistributedDataParallel`` uses it; what uses ``nn`` in turn is in ``compat.distributed``.
"""
