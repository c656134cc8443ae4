"""Three workers that call each other's functions, and share references; the first one has the assertions."""

import gc
import os
import pickle
import sys
import threading
import time

import pytest

import compat as torch
import compat.distributed.rpc as rpc
from compat.distributed.rpc.agent import current
from compat.futures import Future, wait_all

r, n = int(sys.argv[1]), int(sys.argv[2])


class Odd(Exception):
    def __init__(self, a: int, b: int):
        super().__init__(a, b)


class Counter:
    def __init__(self, start: int = 0):
        self.n = start

    def add(self, k: int) -> int:
        self.n += k
        return self.n

    @rpc.functions.async_execution
    def later(self, k: int) -> Future:
        future: Future = Future()
        threading.Timer(0.05, lambda: future.set_result(self.n + k)).start()
        return future


def fail(kind: str) -> None:
    raise {"value": ValueError("bad value"), "odd": Odd(1, 2)}[kind]


def sleep(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


def back(x):  # type: ignore[no-untyped-def]
    """A call inside of a call."""
    return rpc.rpc_sync("w0", torch.mul, args=(x, 10)) + 1


def value_of(rref: rpc.RRef) -> tuple:
    return rref.is_owner(), rref.owner_name(), rref.to_here().n


def pass_on(rref: rpc.RRef) -> rpc.RRef:
    """A reference that goes to a third worker, and lives there when the others have dropped theirs."""
    return rpc.remote("w2", keep, args=(rref,))


kept: list[rpc.RRef] = []


def keep(rref: rpc.RRef) -> None:
    kept.append(rref)


def use_kept() -> int:
    found: int = kept.pop().rpc_sync().add(1)
    return found


def counts() -> int:
    gc.collect()
    return len(current().references.counts())


def flags(x):  # type: ignore[no-untyped-def]
    return x.requires_grad, x.is_leaf


@rpc.functions.async_execution
def not_a_future() -> int:
    return 1


def leave() -> None:
    os._exit(0)


def calls() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert rpc.rpc_sync("w1", torch.add, args=(x, 1)).tolist() == (x + 1).tolist()
    assert rpc.rpc_sync(1, torch.Tensor.sum, args=(x,), kwargs={"dim": 0}).tolist() == [3, 5, 7]
    assert rpc.rpc_sync("w0", back, args=(torch.ones(1),)).item() == 11  # to itself
    assert rpc.rpc_sync(rpc.get_worker_info("w1"), back, args=(torch.ones(1),)).item() == 11
    many = [rpc.rpc_async(f"w{1 + k % 2}", torch.mul, args=(x, k)) for k in range(40)]
    assert [int(f[1, 2]) for f in wait_all(many)] == [5 * k for k in range(40)]
    assert rpc.rpc_async("w1", max, args=(1, 2)).then(lambda f: f.wait() * 5).wait() == 10
    assert rpc.rpc_sync("w1", torch.t, args=(x,)).stride() == (1, 3)
    for t in (torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True) * 2):
        assert rpc.rpc_sync("w1", flags, args=(t,)) == (True, True)
    a, b = rpc.rpc_sync("w1", list, args=((x, x),))
    assert a is b
    # values that are 16-bit, strided otherwise or parts of larger memory
    for t in (x.to(torch.bfloat16), torch.arange(1000)[3:5], x.to_sparse().to_dense(), torch.tensor(1 + 2j).conj()):
        assert torch.equal(rpc.rpc_sync("w1", torch.clone, args=(t,)), t)


def errors() -> None:
    with pytest.raises(ValueError, match=r"(?s)On WorkerInfo\(id=1, name=w1\):.*bad value.*Traceback.*in fail"):
        rpc.rpc_sync("w1", fail, args=("value",))
    with pytest.raises(RuntimeError, match="Failed to create original exception type"):
        rpc.rpc_sync("w1", fail, args=("odd",))
    with pytest.raises(RuntimeError, match=r"ran for more than set timeout \(100 ms\)"):
        rpc.rpc_sync("w1", sleep, args=(1,), timeout=0.1)
    with pytest.raises(RuntimeError, match=r"must return a torch\.futures\.Future"):
        rpc.rpc_sync("w1", not_a_future)
    with pytest.raises(RuntimeError, match="name:w0,rank:0 could not find destination name nobody"):
        rpc.rpc_sync("nobody", sleep)
    with pytest.raises(RuntimeError, match="could not find destination id 7"):
        rpc.rpc_sync(7, sleep)
    with pytest.raises(ValueError, match=r"Cannot get WorkerInfo from name 1\.5"):
        rpc.rpc_sync(1.5, sleep)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="function should be callable"):
        rpc.rpc_async("w1", 3)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="Can't pickle local object"):
        rpc.rpc_sync("w1", lambda: 1)
    with pytest.raises(RuntimeError, match="already initialized"):
        rpc.init_rpc("w0", rank=0, world_size=n)


def references() -> None:
    counter = rpc.remote("w1", Counter, args=(5,))
    assert counter.rpc_sync().add(2) == 7 and counter.rpc_async().add(1).wait() == 8
    assert counter.remote().add(2).to_here() == 10 and counter.rpc_sync().later(5) == 15
    assert counter.to_here().n == 10 and not counter.is_owner() and counter.owner() == rpc.get_worker_info("w1")
    assert rpc.rpc_sync("w1", value_of, args=(counter,)) == (True, "w1", 10)
    assert rpc.rpc_sync("w2", value_of, args=(counter,)) == (False, "w1", 10)
    own = rpc.RRef(Counter(1))
    assert own.is_owner() and own.local_value() is own.to_here() and own.rpc_sync().add(1) == 2
    assert rpc.rpc_sync("w2", value_of, args=(own,)) == (False, "w0", 2)
    assert rpc.remote("w0", Counter).local_value().n == 0
    with pytest.raises(RuntimeError, match="can't call localValue"):
        counter.local_value()
    with pytest.raises(RuntimeError, match="rref can only be pickled when using RPC"):
        pickle.dumps(counter)
    with pytest.raises(ValueError, match="bad value"):
        rpc.remote("w1", fail, args=("value",)).to_here()
    with pytest.raises(RuntimeError, match="set timeout"):
        rpc.remote("w1", sleep, args=(0.5,)).to_here(timeout=0.1)
    scalar = rpc.remote("w1", torch.ones, args=((),), kwargs={"requires_grad": True})
    scalar.backward()
    # a reference in a third worker keeps the value when the other two have none
    moved = rpc.remote("w1", Counter, args=(100,))
    rpc.rpc_sync("w1", pass_on, args=(moved,)).to_here()
    del moved, counter, own, scalar
    assert rpc.rpc_sync("w2", use_kept) == 101
    until = time.monotonic() + 20
    while (left := [rpc.rpc_sync(w, counts) for w in range(n)]) != [0] * n and time.monotonic() < until:
        time.sleep(0.05)
    assert left == [0] * n, left


options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=4, rpc_timeout=60, init_method=sys.argv[3])
with pytest.raises(RuntimeError, match="RPC has not been initialized"):
    rpc.rpc_sync("w1", sleep)
with pytest.raises(RuntimeError, match="Worker name must match"):
    rpc.init_rpc("a b", rank=r, world_size=n, rpc_backend_options=options)
rpc.init_rpc(f"w{r}", rank=r, world_size=n, rpc_backend_options=options)
if r == 0:
    calls()
    errors()
    references()
rpc.shutdown()

# once more, with workers that end
rpc.init_rpc(f"w{r}", rank=r, world_size=n, rpc_backend_options=options)
if r > 0:
    time.sleep(100)
with pytest.raises(RuntimeError, match=r"rank 2 \(process \d+ on .*\) has ended"):
    rpc.rpc_sync("w2", leave)
with pytest.raises(RuntimeError, match="rank 2"):
    rpc.rpc_sync("w2", sleep)
assert rpc.rpc_sync("w1", sleep, args=(0,)) == "slept"
with pytest.raises(RuntimeError, match="rank 1"):
    rpc.rpc_sync("w1", leave)
rpc.shutdown(graceful=False)
print("done")
