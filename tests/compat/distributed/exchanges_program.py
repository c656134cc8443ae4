"""All collectives, called by each process of a group."""

import math
import sys
from datetime import timedelta

import pytest

import compat as torch
import compat.distributed as dist
from compat.distributed.nn import functional

r, n = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", init_method=sys.argv[3], rank=r, world_size=n, timeout=timedelta(seconds=400))
everybody = list(range(n))
total = n * (n - 1) / 2

x = torch.arange(4.0) + r
assert dist.all_reduce(x) is None and x.tolist() == [n * i + total for i in range(4)]
x = torch.full((2_000_003,), float(r + 1))  # more than one piece
dist.all_reduce(x)
assert (x == total + n).all()
work = dist.all_reduce(x, dist.ReduceOp.AVG, async_op=True)
assert work.wait() and work.is_completed() and (x == total + n).all()
x = torch.tensor([r, 7 - r])
dist.all_reduce(x, dist.ReduceOp.MAX)
assert x.tolist() == [n - 1, 7]
for size in (3, 300):  # to all at once; and in shares
    x = torch.full((size, size), float(r))
    dist.broadcast(x, 1)
    assert (x == 1).all()
x = torch.zeros(4, 4)
x[:, 1] = r
dist.all_reduce(x[:, 1])  # a view
assert x.sum() == 4 * total and x[2, 1] == total
w = torch.full((2,), float(r), requires_grad=True)
version = w._version
dist.all_reduce(w)
assert w.is_leaf and w.requires_grad and w._version > version

parts = [torch.zeros(3) for _ in range(n)]
dist.all_gather(parts, torch.full((3,), float(r)))
assert [float(p[0]) for p in parts] == everybody
x = torch.zeros(n * 3)
dist.all_gather_into_tensor(x, torch.full((3,), float(r)))
assert x[::3].tolist() == everybody
x = torch.zeros(2)
dist.reduce_scatter_tensor(x, torch.arange(2.0 * n))
assert x.tolist() == [n * 2 * r, n * (2 * r + 1)]
for op, wanted in (
    ("SUM", total + n),
    ("AVG", (total + n) / n),
    ("PRODUCT", math.factorial(n)),
    ("MAX", n),
    ("MIN", 1),
):
    x = torch.zeros(3, 2).t()  # results have the strides of the output
    dist.reduce_scatter(x, [torch.full((2, 3), r + 1.0) for _ in everybody], getattr(dist.ReduceOp, op))
    assert torch.equal(x, torch.full((2, 3), wanted)), (op, x)
for empty in (torch.zeros(0), torch.zeros(3, 0)):
    dist.reduce_scatter(empty, [empty.clone() for _ in everybody])
    dist.all_reduce(empty)
for error, text, call in (
    (RuntimeError, "AVG takes floating", lambda: dist.all_reduce(torch.ones(2, dtype=torch.int64), dist.ReduceOp.AVG)),
    (RuntimeError, "input_list has 1 tensors", lambda: dist.reduce_scatter(torch.ones(2), [torch.ones(2)])),
    (RuntimeError, r"input of size \[5\] must hold", lambda: dist.reduce_scatter_tensor(torch.ones(2), torch.ones(5))),
    (RuntimeError, "input is of torch.int64", lambda: dist.reduce_scatter_tensor(torch.ones(1), torch.arange(n))),
    (ValueError, "tensors with different dtypes", lambda: dist.reduce_scatter(torch.ones(1), [torch.arange(1)] * n)),
    (ValueError, "complex", lambda: dist.all_reduce(torch.ones(1, dtype=torch.complex64), dist.ReduceOp.MAX)),
    (RuntimeError, "complex", lambda: dist.reduce(torch.ones(1, dtype=torch.complex64), 0, dist.ReduceOp.MAX)),
    (RuntimeError, "non-integral", lambda: dist.reduce_scatter(torch.ones(1), [torch.ones(1)] * n, dist.ReduceOp.BAND)),
):
    with pytest.raises(error, match=text):
        call()
x = torch.zeros(n, dtype=torch.bfloat16)
dist.all_to_all_single(x, torch.arange(n, dtype=torch.bfloat16) + 10 * r)
assert x.tolist() == [10 * i + r for i in everybody]
parts = [torch.zeros(1) for _ in range(n)] if r == 0 else None
dist.gather(torch.tensor([float(r)]), parts, dst=0)
assert r or torch.cat(parts).tolist() == everybody
x = torch.zeros(1)
dist.scatter(x, [torch.tensor([float(i)]) for i in everybody] if r == 1 else None, src=1)
assert x.item() == r
x = torch.tensor([float(r)])
dist.reduce(x, dst=1)
assert x.item() == (total if r == 1 else r)

found = [None] * n
dist.all_gather_object(found, {"rank": r})
assert found == [{"rank": i} for i in everybody]
found = [r, "a"]
dist.broadcast_object_list(found, 1)
assert found == [1, "a"]
found = [None]
dist.scatter_object_list(found, everybody if r == 0 else None)
assert found == [r]
found = [None] * n if r == 0 else None
dist.gather_object(r, found)
assert r or found == everybody

pair, ends = dist.new_group([0, 1]), dist.new_group([0, n - 1])
if r < 2:
    x = torch.ones(1)
    dist.all_reduce(x, group=pair)
    assert x.item() == 2 and dist.get_group_rank(pair, r) == r and dist.get_process_group_ranks(pair) == [0, 1]
else:
    assert pair == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(pair) == -1
if r == 0:
    dist.send(torch.arange(5), 1, tag=3)
    dist.send_object_list([1, "b"], 1)
if r == 1:
    x = torch.zeros(5, dtype=torch.int64)
    assert dist.recv(x, tag=3) == 0 and x.tolist() == [0, 1, 2, 3, 4]
    found = [0, 0]
    assert dist.recv_object_list(found, 0) == 0 and found == [1, "b"]
x = torch.zeros(1)
right, left = (r + 1) % n, (r - 1) % n
for work in dist.batch_isend_irecv(
    [dist.P2POp(dist.isend, torch.tensor([float(r)]), right), dist.P2POp(dist.irecv, x, left)]
):
    work.wait()
assert x.item() == left
dist.barrier()
dist.monitored_barrier()
later = dist.all_reduce(x, async_op=True).get_future().then(lambda done: done.value()[0] * 2)
assert later.wait().item() == 2 * total

x = torch.full((2, 2), float(r + 1), requires_grad=True)
y = functional.all_reduce(x * 2)
(y * y * (r + 1)).sum().backward()
assert x.grad[0, 0].item() == 2 * 2 * (2 * (total + n)) * (total + n)
x.grad = None
sum(p.sum() * (i + 1) for i, p in enumerate(functional.all_gather(x))).backward()
assert x.grad[0, 0].item() == n * (r + 1)

dist.destroy_process_group()
assert not dist.is_initialized()
print("done", r)
