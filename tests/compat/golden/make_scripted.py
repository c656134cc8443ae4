"""Records a module that real PyTorch has scripted, and what its methods give, for ``tests/compat/jit/test_load.py``.

pip install torch==2.13.0
python tests/compat/golden/make_scripted.py
"""

# ruff: noqa: UP006, UP007, UP031, UP032, UP035, UP045, PERF401, SIM118, E501 (what TorchScript knows, all of it)

import enum
import json
from collections import OrderedDict
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor, nn

HERE = Path(__file__).parent


class Point(NamedTuple):
    place: Tensor
    weight: int


class Color(enum.Enum):
    RED = 1
    GREEN = 2


@torch.jit.script
class Sum:
    def __init__(self, start: float = 0.0):
        self.total = start
        self.seen: List[float] = []

    def add(self, value: float) -> "Sum":
        self.total += value
        self.seen.append(value)
        return self

    def __len__(self) -> int:
        return len(self.seen)

    def __add__(self, other: "Sum") -> "Sum":
        return Sum(self.total + other.total)

    def __lt__(self, other: "Sum") -> bool:
        return self.total < other.total


@torch.jit.script
class Counted:
    def __init__(self, n: int):
        self.n = n

    def __enter__(self):
        self.n += 1
        return self.n

    def __exit__(self, kind: Any, value: Any, trace: Any):
        self.n += 10


@torch.jit.script
def scaled(x: Tensor, n: int):
    return x * n, n


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Plus(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Twice(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Net(nn.Module):
    count: Optional[int]
    point: Point
    points: List[Point]

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.ReLU()])
        self.heads = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Tanh()})
        self.stack = nn.Sequential(OrderedDict([("first", nn.Linear(3, 3)), ("second", nn.GELU())]))
        self.choices = nn.ModuleList([Plus(), Twice()])
        self.cell = nn.LSTMCell(3, 3)
        self.register_buffer("offset", torch.ones(3))
        self.plain = torch.full((3,), 2.0)
        self.point = Point(torch.ones(3), 4)
        self.points = [Point(torch.zeros(3), 5)]
        self.names = ["a", "é"]
        self.table = {"k": 3}
        self.count = None
        self.color = Color.GREEN

    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        h, c = self.cell(self.stack(x))
        return h + c + self.offset

    @torch.jit.export
    def control(self, x: Tensor, n: int):
        i = 0
        while i < n and bool(x.sum() < 100):
            if i == 1:
                i += 1
                continue
            x = x + i
            i += 1
        if x.sum() > 0:
            return x
        for k in range(5, 0, -2):
            x = x - k
            if k == 3:
                break
        return x

    @torch.jit.export
    def numbers(self, a: int, b: int, f: float):
        return (a / b, a // b, a % b, a**b, -a, abs(a), a & b, a | b, a ^ b, a << 2, a >> 1, divmod(a, b), f // 2, f % 2,
                a < b or f > 1.0, int(f), float(a), bool(a), round(f), min(a, b), 1 < a < 8, complex(f, 1.0) * 2)  # fmt: skip

    @torch.jit.export
    def texts(self, s: str):
        out: List[str] = []
        for ch in s:
            if ch != "l":
                out.append(ch)
        return (s.upper(), s.split(", "), s.replace("l", "L"), s.find("o"), s.rfind("o"), s.startswith("He"), s.count("o", 5),
                s.strip("Hd"), s[1:4], s[-1], "-".join(out), "World" in s, s.center(16, "*"), s.partition(","), "é" + s)  # fmt: skip

    @torch.jit.export
    def forms(self, n: int, f: float, b: bool):
        return (f"{n} {f} {b}", "{} {}".format(1.0, 0.1), "%d %s" % (n, f), str([1, 2]), str(1e20), f"{(n, 'a')}")

    @torch.jit.export
    def lists(self, a: List[int]):
        a = a.copy()
        a.append(5)
        a.extend([7, 8])
        a.insert(1, 9)
        last = a.pop()
        a.remove(9)
        b = sorted(a)
        a.sort(reverse=True)
        del a[0]
        a += [4]
        x, y = b[0], b[1]
        pairs = [(v, i) for i, v in enumerate(a)]
        pairs.sort()
        return (
            a,
            b,
            last,
            a.index(5),
            5 in a,
            a[1:],
            a[::2],
            a + b,
            b * 2,
            [i * 2 for i in a],
            x + y,
            sum(a),
            max(a),
            pairs,
        )

    @torch.jit.export
    def tensor_lists(self, x: Tensor):
        rows = list(x.unbind(0))
        rows.append(x[0])
        return torch.stack(rows), len(rows), x.split(1), torch.cat([r + 1 for r in rows]), x.chunk(2)[0]

    @torch.jit.export
    def dictionaries(self, d: Dict[str, int]):
        d = d.copy()
        d["c"] = 3
        taken = d.pop("a"), d.pop("zz", 8), d.setdefault("n", 4), d.get("q", 5)
        d.update({"x": 10})
        total = 0
        for k, v in d.items():
            total += v * len(k)
        del d["x"]
        groups: Dict[int, List[str]] = {}
        for k in d.keys():
            if d[k] not in groups:
                empty: List[str] = []
                groups[d[k]] = empty
            groups[d[k]].append(k)
        return d, taken, total, list(d.values()), groups, {k: -v for k, v in d.items()}, len(d)

    @torch.jit.export
    def optional(self, x: Tensor, y: Optional[Tensor]):
        if y is None:
            return x
        return x + y

    @torch.jit.export
    def refined(self, v: Union[int, str, float]):
        if isinstance(v, int):
            return v + 1
        elif isinstance(v, str):
            return len(v)
        else:
            return int(v) * 10

    @torch.jit.export
    def named(self, x: Tensor):
        p = Point(x, 3)
        place, weight = p
        return p, p.weight + self.point.weight + self.points[0].weight, place * weight

    @torch.jit.export
    def attributes(self, x: Tensor):
        if self.count is None:
            self.count = 0
        count = self.count
        assert count is not None
        self.count = count + 1
        self.names.append("z")
        return self.names, self.table["k"], self.count, x * self.plain + self.point.place, self.color.value

    @torch.jit.export
    def members(self, n: int):
        c = Color.RED if n == 1 else Color.GREEN
        return c == Color.RED, c == self.color, c.name, c.value

    @torch.jit.export
    def own_class(self, v: float):
        a = Sum()
        a.add(v).add(v * 3)
        b = a + Sum(1.0)
        found = [b, a]
        found.sort()
        return a.total, len(a), b.total, a < b, found[0].total

    @torch.jit.export
    def guarded(self, x: Tensor):
        with torch.no_grad():
            y = self.layers[0](x)
        c = Counted(1)
        with c as k:
            y = y + k
        return y, y.requires_grad, c.n, torch.is_grad_enabled()

    @torch.jit.export
    def forked(self, x: Tensor):
        one = torch.jit.fork(scaled, x, 2)
        more: List[torch.jit.Future[Tuple[Tensor, int]]] = []
        for i in range(3):
            more.append(torch.jit.fork(scaled, x, i))
        y, n = torch.jit.wait(one)
        return y, n, [torch.jit.wait(f)[0] for f in more]

    @torch.jit.export
    def contained(self, x: Tensor, i: int):
        out: List[Tensor] = []
        for name, head in self.heads.items():
            out.append(head(x) * len(name))
        return out, self.heads["a"](x), len(self.layers)

    @torch.jit.export
    def chosen(self, x: Tensor, i: int):
        layer: Layer = self.choices[i]
        return layer.forward(x)

    @torch.jit.export
    def indexed(self, x: Tensor):
        i = torch.tensor([0, 1, 1])
        y = x.clone()
        y[0] = 5.0
        y[:, 1] = torch.tensor([7.0, 8.0])
        y[y > 6] = 0
        y[i[:1], i[:1]] += 3.0
        return x[0], x[:, 1:], x[..., -1], x[None], x[i[:2]], x[x > 0], x[:, i], x[::2], y, x[:, None, 1]

    @torch.jit.export
    def made(self, x: Tensor):
        return (torch.zeros(2, 3), torch.full((2,), 3.5), torch.arange(1, 5), torch.tensor([[1.5, 2.0]]), torch.tensor(3),
                torch.zeros(2, dtype=torch.int64, device=x.device), x.new_ones([2]), torch.ones_like(x, dtype=torch.float64),
                x.to(torch.int32), x.max(1), x.sum(1, dtype=torch.float64), x.to(x.double()), x.softmax(1),
                torch.where(x > 0), x.topk(2)[0])  # fmt: skip

    @torch.jit.export
    def described(self, x: Tensor):
        v: List[List[float]] = x.tolist()
        return x.shape, x.dtype, x.device.type, x.dim(), x.numel(), x.size(0), v, x.is_contiguous(), x.T.stride()

    @torch.jit.export
    def refused(self, n: int):
        if n < 0:
            raise ValueError(f"negative {n}")
        return n

    @torch.jit.export
    def asserted(self, n: int):
        assert n > 0, "n must be positive"
        return n


def plain(value: Any) -> Any:
    """A value in JSON."""
    if isinstance(value, torch.Tensor):
        return {"tensor": value.tolist(), "dtype": str(value.dtype)}
    if isinstance(value, tuple):
        return {"tuple": [plain(v) for v in value]}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {"dict": [[plain(k), plain(v)] for k, v in value.items()]}
    return {"complex": [value.real, value.imag]} if isinstance(value, complex) else value


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.jit.script(Net().eval()).save(HERE / "scripted.pt")
    net = torch.jit.load(HERE / "scripted.pt")
    results = []
    for call in (HERE / "scripted.txt").read_text().splitlines():
        try:
            result = plain(eval(f"net.{call}", {"net": net, "x": torch.arange(6.0).reshape(2, 3) - 2.25}))
        except Exception as error:
            result = {"error": type(error).__name__, "message": str(error).strip().splitlines()[-1]}
        results.append(result)
    (HERE / "scripted.json").write_text(json.dumps(results))
