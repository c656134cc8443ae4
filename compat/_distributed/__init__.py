"""The implementation of ``torch.distributed``.

``transport`` connects processes and exchanges NumPy arrays; ``groups`` has the process groups, and ``collectives``,
``point_to_point`` and ``objects`` operate on tensors and on picklable objects. It is below ``nn``, whose
``DistributedDataParallel`` uses it; modules that use ``nn`` are in ``compat.distributed``.
"""
