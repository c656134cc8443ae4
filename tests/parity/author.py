"""Writing random programs: kinds of lines, and the choice of the next one. See ``programs.py``.

A line is a template in which ``{x}`` and ``{y}`` are tensors of the program, ``{y}`` mostly one that broadcasts against
``{x}``, and ``{a}`` and ``{b}`` new names. A kind of lines has a weight, and conditions on its tensors. Lines are not
written where PyTorch's behaviour is known to differ, or is undefined:

- changes of inference tensors outside of inference mode, where PyTorch writes first and raises then; inference tensors
  that require grad, for which PyTorch records what its own code does; memory exchanged between them and others;
  transforms of them, which wrap them, so that inner graphs can save them but the outer one cannot;
- hooks on views that are in the graph only because their base is, and custom functions that write into leaves that were
  detached in place: PyTorch crashes;
- batched gradients where tensors retain theirs, which are left with a part of the batch that cannot be used;
- ``detach_`` and ``requires_grad_`` of tensors that share memory with others, ``set_`` and ``data = `` of tensors in
  the graph, and sizes changed in place under ``no_grad``;
- writes to overlapping elements, reads that overlap the written memory, and gradients of elements that were written
  twice;
- the memory layout of the results of ``slice_scatter`` and similar operations: that of the input, in a copy of all
  around it;
- the gradient of ``sgn`` of real numbers, which is a zero that cannot be read;
- products whose difference is only rounding, which depends on whether the compiler fuses them;
- saved tensors of a module's node replaced by memory of another rank, where the two fail differently;
- saved indices replaced by ``data = ``, which may be out of range;
- bools where PyTorch's gradient would subtract or negate them, which raises in the backward pass;
- numbers reinterpreted with another width, which makes rounding errors arbitrary, and integers reinterpreted as other
  numbers;
- sines of large numbers in single and half precision, which consist of rounding errors;
- the bits of NaN, uninitialized memory, and the order of equal numbers after an unstable sort;
- which of equal numbers ``kthvalue`` and ``topk`` select, and so their gradients; complex float16, which compat does
  not have; ``vmap`` over an empty batch, where PyTorch reads the first element; second gradients of empty tensors;
- means computed together with variances, and ``gelu``, of infinite numbers: the result is infinite or NaN depending on
  the size;
- roots of numbers that are zero up to rounding, which may be negative, and normalized rows in which a number is the
  mean;
- such means where they are zero, and modules that normalize constant rows, whose results in PyTorch are rounding
  errors;
- fractional parts of low-precision numbers that are integers up to rounding, which are zero or nearly one, remainders
  of low-precision numbers, and whether they exceed an integer;
- third derivatives of ``layer_norm``, in which PyTorch treats the means as constants;
- views that are in the graph only because their base is, beside other tensors: PyTorch saves fewer of these;
- angles of zeros: whether one is negative depends on the initial value of a sum, as in ``layer_norm``;
- complex numbers beside infinities and NaN, which PyTorch spreads to both parts by multiplying summands with an alpha
  of one;
- gradients given to ``backward`` that are tensors of the program: PyTorch may keep their memory as the leaf's gradient;
- roots, angles, logarithms and powers of complex numbers with a zero imaginary part: depending on the size, PyTorch
  negates zeros or subtracts them from zero, so its results lie on either side of a branch cut;
- inference tensors beside tensors whose hooks would crash, of which PyTorch saves less than of others; or returned by a
  custom function that requires grad; and tangents of them, or in inference mode, where PyTorch drops them;
- derivatives row by row of functions without a result, at which PyTorch fails, and these and tangents of overlapping
  memory;
- lines at which PyTorch detects an internal error (``INTERNAL ASSERT FAILED``, a check without a message), and all
  lines after them;
- errors that depend on values, which are raised when the values are computed: indices out of bounds, too few elements
  for a mask.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.parity.fitness import (
    alone,
    apart,
    balanced,
    broadcasts,
    centred,
    coarse,
    cut,
    inner,
    level,
    made_within,
    near_nothing,
    near_whole,
    normalized,
    short,
    stray,
    tangled,
)
from tests.parity.layers import KINDS
from tests.parity.templates import (
    ALONE,
    AS_IT_IS,
    BACKWARD,
    BINARY,
    BLOCKS,
    CALLS,
    FUNCTIONS,
    GRADIENTS,
    INPLACE,
    INPLACE_BINARY,
    KEPT,
    MARKS,
    MEMORY,
    OPTIMIZERS,
    OUT,
    RESHAPING,
    SEVERAL,
    STATES,
    STEPS,
    UNARY,
    VIEWS,
    WRITING,
)

if TYPE_CHECKING:
    from tests.parity.programs import Run

#: The dtypes of leaves, with weights.
LEAVES = {"float64": 20, "float32": 2, "complex128": 1, "int64": 1, "float16": 1, "bfloat16": 1}
SIZES = ((), (1,), (3,), (4,), (2, 3), (3, 2), (3, 3), (2, 1), (1, 3), (2, 3, 2))

#: Not written in inference mode: lines that make leaves there, retained gradients, lines that ask leaves for nodes.
NEVER_WITHIN = (
    r"tangent|linearize|hessian|jacfwd|requires_grad|Parameter|\bcopy\.|pickle|backward\(|multi_grad|edge|layer"
)

#: The largest number of elements of a tensor that a line uses: some lines square it.
LARGEST = 200

#: Operations whose gradients in PyTorch subtract or negate an operand, which bools cannot.
NO_BOOLS = r"logaddexp|atan2|\*\*"

#: Derivatives row by row, or in one direction.
ROWS = r"jacobian|hessian|jac(rev|fwd)|linearize|tangent"

#: Functions with a branch cut at a zero imaginary part.
JUMPS = r"sqrt|angle|logsumexp|\*\*"

#: Functions of infinite numbers whose results in PyTorch depend on the size.
SPREAD = r"var_mean|gelu"

#: Third derivatives.
THRICE = "grad(torch.autograd.grad(torch.autograd.grad("

#: Periodic functions, whose values at large numbers depend on rounding errors.
TURNS = r"\.sin\(|Both|tangent|linearize|jvp|jac|hessian|checkpoint"


class Author:
    """Writes a program line by line, while it runs.

    Args:
        chance: the source of random choices.
        run: a run in PyTorch.
    """

    def __init__(self, chance: random.Random, run: Run):
        self.chance = chance
        self.run = run
        self.count = 0
        #: The block that the next line is written in, if any.
        self.block: str | None = None
        #: The tensors, by address, that were detached in place.
        self.taken: set[int] = set()
        self.kinds = {
            self.unary: 5, self.binary: 5, self.view: 6, self.several: 1, self.function: 0.8, self.inplace: 6,
            self.out: 0.5, self.mark: 3, self.kept: 0.5, self.removal: 0.5, self.status: 0.5, self.memory: 0.4,
            self.layer: 0.3, self.call: 0.9, self.state: 0.2, self.optimizer: 0.15, self.step: 0.3,
            self.reshaping: 0.6, self.backward: 2, self.gradient: 2, self.look: 0.4, self.refused: 0.2,
        }  # fmt: skip

    def program(self, length: int) -> list[str]:
        lines: list[str] = []
        for _ in range(length):
            line = self.next()
            self.run.line(line)
            if self.run.broken:
                break
            lines.append(line)
        lines.append("look()")
        self.run.line("look()")
        return lines

    def next(self) -> str:
        self.block = None
        tensors = self.run.tensors()
        if len(tensors) < 2 or self.chance.random() < 0.06:
            return self.leaf()
        (kind,) = self.chance.choices(list(self.kinds), list(self.kinds.values()))
        if kind not in (self.look, self.reshaping, self.refused) and self.chance.random() < 0.1:
            self.block = self.chance.choice(BLOCKS)
        line = kind(tensors)
        if self.unforeseen(line, [t for n, t in tensors.items() if re.search(rf"\b{n}\b", line)]):
            line = self.leaf()
        if self.block is None:
            return line
        if self.inference and re.search(NEVER_WITHIN, line):
            return self.leaf()  # the choice may be valid in inference mode only
        if self.inference and self.chance.random() < 0.3 and re.match(r"x\d+ = ", line):
            return line.replace(" = ", f" = {self.block}(lambda: ", 1) + ")()"
        return f"with {self.block}: {line}"

    def unforeseen(self, line: str, given: list[Any]) -> bool:
        """Whether the result of a line is undefined for these tensors, given their values and origin."""
        within = any(t.is_inference() for t in given)
        return (
            any(t.numel() > LARGEST for t in given)
            or ("atan2" in line and any(bool((t.data == 0).any()) for t in given))
            or (re.search(JUMPS, line) is not None and any(cut(t) for t in given))
            or ("layer_norm" in line and any(map(centred, given)))
            or ("sqrt_(" in line and any(map(near_nothing, given)))
            or (re.search(SPREAD, line) is not None and not all(map(self.finite, given)))
            or ("var_mean" in line and any(map(balanced, given)))
            or (re.search(r"\bm\d", line) is not None and any(map(level, given)))
            or (re.search(r"\.frac|abs\(\) > 1", line) is not None and any(map(near_whole, given)))
            or (".fmod" in line and any(map(short, given)))
            or (THRICE in line and any(map(normalized, given)))
            or (len(given) > 1 and any(map(stray, given)))
            or (any(t.is_complex() for t in given) and not all(map(self.finite, given)))
            or (re.search(TURNS, line) is not None and any(map(coarse, given)))
            or (re.search(r"\.grad\b", line) is not None and any(map(made_within, given)))
            or (within and (any(stray(t) for t in given) or re.search(r"Swap|tangent", line) is not None))
            or (
                re.search(ROWS, line) is not None and any(not t.numel() or 0 in t.stride() or tangled(t) for t in given)
            )
        )

    def finite(self, t: Any) -> bool:
        """Whether all its numbers are finite."""
        return bool(self.run.torch.isfinite(t.data).all())

    @property
    def inference(self) -> bool:
        """Whether the next line is written in inference mode."""
        return self.block == "torch.inference_mode()"

    def writable(self, t: Any) -> bool:
        """Whether the next line may write into a tensor."""
        return self.inference or not t.is_inference()

    # ---------------------------------------------------------------- the choice of tensors

    def new(self) -> str:
        self.count += 1
        return f"x{self.count}"

    def pick(self, tensors: dict[str, Any]) -> str:
        """A tensor, recent ones more often."""
        names = list(tensors)
        return names[-1 - min(int(self.chance.expovariate(0.35)), len(names) - 1)]

    def partner(self, tensors: dict[str, Any], beside: Any) -> str:
        """One of the tensors, most often one that broadcasts against a given one."""
        fitting = [n for n, t in tensors.items() if broadcasts(t.shape, beside.shape)]
        others = fitting if fitting and self.chance.random() < 0.85 else list(tensors)
        if self.chance.random() < 0.1 and beside.is_floating_point():
            others = [n for n, t in tensors.items() if t.is_floating_point()] or others
        return self.chance.choice(others)

    def fill(self, templates: tuple[str, ...], tensors: dict[str, Any], **given: Any) -> str:
        x = self.pick(tensors)
        template = self.chance.choice(templates)
        if "index_" in template and 0 in tensors[x].shape:
            template = templates[0]  # an index into an empty tensor raises in PyTorch's backward only
        new = {name: self.new() for name in "ab" if f"{{{name}}}" in template}
        others = apart(tensors, x) if template in WRITING else tensors
        return template.format(x=x, y=self.partner(others, tensors[x]), **new, **given)

    # ---------------------------------------------------------------- kinds of lines

    def leaf(self) -> str:
        size = self.chance.choice(SIZES)
        numbers: Any = np.array([self.chance.randrange(-8, 9) / 4 for _ in range(int(np.prod(size)))]).reshape(size)
        (dtype,) = self.chance.choices(list(LEAVES), list(LEAVES.values()))
        numbers = {"int64": np.round, "complex128": lambda n: n * (1 - 0.5j)}.get(dtype, lambda n: n)(numbers)
        asks = dtype != "int64" and self.chance.random() < 0.7
        return f"{self.new()} = torch.tensor({numbers.tolist()}, dtype=torch.{dtype}{', requires_grad=True' * asks})"

    def unary(self, tensors: dict[str, Any]) -> str:
        return f"{self.new()} = {self.fill(UNARY, tensors)}"

    def binary(self, tensors: dict[str, Any]) -> str:
        line = f"{self.new()} = {self.fill(BINARY, tensors)}"
        bools = [n for n, t in tensors.items() if t.dtype == self.run.torch.bool and re.search(rf"\b{n}\b", line)]
        return self.leaf() if bools and re.search(NO_BOOLS, line) else line

    def view(self, tensors: dict[str, Any]) -> str:
        line = f"{self.new()} = {self.fill(VIEWS, tensors)}"
        read = re.search(r"(\w+)\.view\(torch\.(\w+)\)", line)
        if read and WIDTH.get(str(tensors[read[1]].dtype).removeprefix("torch.")) != WIDTH[read[2]]:
            return self.leaf()
        half = [n for n, t in tensors.items() if str(t.dtype) in ("torch.float16", "torch.bfloat16")]
        return self.leaf() if any(f"view_as_complex({n})" in line for n in half) else line

    def several(self, tensors: dict[str, Any]) -> str:
        return self.fill(SEVERAL, tensors)

    def function(self, tensors: dict[str, Any]) -> str:
        tensors = {n: t for n, t in tensors.items() if not tangled(t)} or tensors
        line = f"{self.new()} = {self.fill(FUNCTIONS, tensors)}"
        written = [t for n, t in tensors.items() if re.search(rf"\b{n}\b", line)]
        fine = "Grow" not in line or all(self.writable(t) and id(t) not in self.taken for t in written)
        return line if fine else self.leaf()

    def inplace(self, tensors: dict[str, Any]) -> str:
        tensors = {n: t for n, t in tensors.items() if not stray(t) and t.numel() and not tangled(t)}
        if not self.inference:
            named = tensors.values()
            tensors = {n: t for n, t in tensors.items() if not t.is_inference() and not inner(t, named)}
        if not tensors:
            return self.leaf()
        if self.chance.random() < 0.6:
            line = self.fill(INPLACE, tensors)
            if "requires_grad_" in line and not all(alone(t, tensors) for n, t in tensors.items() if f"{n}." in line):
                return self.leaf()
            if "squeeze_" in line and self.block in ("torch.no_grad()", "torch.inference_mode()"):
                return self.leaf()
            shared = [n for n, t in tensors.items() if 0 in t.stride() and f"{n}." in line]
            return self.leaf() if shared and re.search(r"index|mask|tril_|> 0|\[\[0", line) else line
        x = self.pick(tensors)
        template = self.chance.choice(INPLACE_BINARY)
        given = apart(tensors, x)
        if re.search(r"index|scatter|copy_|> 0|\]\] =|True\] =|T\[", template):
            if 0 in tensors[x].stride():
                return self.leaf()
            given = {n: t for n, t in given.items() if n != x}  # the memory that is read must not overlap
        return template.format(x=x, y=self.partner(given, tensors[x])) if given else self.leaf()

    def out(self, tensors: dict[str, Any]) -> str:
        plain = {n: t for n, t in tensors.items() if not t.requires_grad and alone(t, tensors) and 0 not in t.stride()}
        plain = {n: t for n, t in plain.items() if self.writable(t)}
        if not plain:
            return self.leaf()
        x = self.pick(plain)
        others = {n: t for n, t in tensors.items() if n != x and t.dtype == tensors[x].dtype}
        others = {n: t for n, t in others.items() if t.shape == tensors[x].shape and t.is_floating_point()}
        return self.chance.choice(OUT).format(x=x, y=self.chance.choice(list(others))) if others else self.leaf()

    def mark(self, tensors: dict[str, Any]) -> str:
        plain = {n: t for n, t in tensors.items() if not t.is_inference() and not stray(t)}
        return self.fill(MARKS, plain) if plain else self.leaf()

    def kept(self, tensors: dict[str, Any]) -> str:
        plain = {n: t for n, t in tensors.items() if not t.is_inference() and not stray(t)}
        return f"{self.new().replace('x', 'h')} = {self.fill(KEPT, plain)}" if plain else self.leaf()

    def removal(self, tensors: dict[str, Any]) -> str:
        handles = [name for name in self.run.scope if re.fullmatch(r"h\d+", name)]
        return f"{self.chance.choice(handles)}.remove()" if handles else self.kept(tensors)

    def layer(self, tensors: dict[str, Any]) -> str:
        return f"{self.new().replace('x', 'm')} = layer({self.chance.choice(list(KINDS))!r})"

    def one(self, letter: str) -> str | None:
        """The name of one of the program's modules or optimizers, if it has any."""
        found = [name for name in self.run.scope if re.fullmatch(rf"{letter}\d+", name)]
        return self.chance.choice(found) if found else None

    def call(self, tensors: dict[str, Any]) -> str:
        m = self.one("m")
        fitting = {n: t for n, t in tensors.items() if t.dim() and t.shape[-1] == 3 and not tangled(t)}
        return self.fill(CALLS, fitting or tensors, m=m) if m else self.layer(tensors)

    def state(self, tensors: dict[str, Any]) -> str:
        m = self.one("m")
        return self.chance.choice(self.detaching(STATES, tensors)).format(m=m) if m else self.layer(tensors)

    def detaching(self, templates: tuple[str, ...], tensors: dict[str, Any]) -> list[str]:
        """The templates, without those that detach gradients in place if one of these is a tensor of the program."""
        grads = [t.grad for t in tensors.values() if not stray(t) and (t.is_leaf or t.retains_grad)]
        named = any(grad is t for grad in grads if grad is not None for t in tensors.values())
        return [line for line in templates if not named or "set_to_none" not in line]

    def optimizer(self, tensors: dict[str, Any]) -> str:
        m = self.one("m")
        leaves = [n for n, t in tensors.items() if not stray(t) and t.requires_grad and t.is_leaf and alone(t, tensors)]
        own = [f"{m}.parameters()"] * (m is not None) + [f"[{n}]" for n in leaves[-1:]]
        if not own:
            return self.layer(tensors)
        made = self.chance.choice(OPTIMIZERS).format(p=self.chance.choice(own))
        return f"{self.new().replace('x', 'o')} = {made}"

    def step(self, tensors: dict[str, Any]) -> str:
        o = self.one("o")
        return self.chance.choice(self.detaching(STEPS, tensors)).format(o=o) if o else self.optimizer(tensors)

    def status(self, tensors: dict[str, Any]) -> str:
        plain = {n: t for n, t in tensors.items() if self.writable(t) and alone(t, tensors)}
        plain = {n: t for n, t in plain.items() if n not in self.run.uncounted}  # the origin of some is unknown
        if not plain:
            return self.leaf()
        line = self.fill(ALONE, plain)
        self.taken |= {id(t) for n, t in plain.items() if f"{n}." in line}
        return line

    def memory(self, tensors: dict[str, Any]) -> str:
        plain = {n: t for n, t in tensors.items() if alone(t, tensors) and not t.requires_grad}
        plain = {n: t for n, t in plain.items() if not t.is_inference() and (t.is_floating_point() or t.is_complex())}
        if not plain or self.inference:
            return self.leaf()
        x = self.pick(plain)
        others = {n: t for n, t in tensors.items() if t.dtype == tensors[x].dtype and not t.is_inference()}
        if any(re.fullmatch(r"m\d+", name) for name in self.run.scope):
            others = {n: t for n, t in others.items() if t.dim() == tensors[x].dim()}
        lines = [line for line in MEMORY if "resize_" not in line or tensors[x].numel()]
        return self.chance.choice(lines).format(x=x, y=self.partner(others, tensors[x]))

    def reshaping(self, tensors: dict[str, Any]) -> str:
        plain = {n: t for n, t in tensors.items() if self.writable(t)}
        return self.fill(RESHAPING, plain) if plain else self.leaf()

    def refused(self, tensors: dict[str, Any]) -> str:
        made = {n: t for n, t in tensors.items() if t.is_inference() and t.numel() and not tangled(t)}
        return self.fill(AS_IT_IS, made) if made else self.leaf()

    def backward(self, tensors: dict[str, Any]) -> str:
        return self.fill(BACKWARD, tensors)

    def gradient(self, tensors: dict[str, Any]) -> str:
        x, y = self.pick(tensors), self.pick(tensors)
        given = [g for g in GRADIENTS if tensors[x].numel() or not re.search("vmap|create_graph", g)]
        if any(t.retains_grad for t in tensors.values()):
            given = [g for g in given if "batched" not in g]
        if tensors[x].is_inference() or tensors[y].is_inference():
            given = [g for g in given if "torch.func." not in g]
        gradient = self.chance.choice(given).format(x=x, y=y)
        return f"{self.new()} = {gradient}.clone(memory_format=torch.contiguous_format)"

    def look(self, tensors: dict[str, Any]) -> str:
        return "look()"


#: Bytes of the real numbers that dtypes are made of.
WIDTH = {"float16": 2, "bfloat16": 2, "float32": 4, "complex64": 4, "float64": 8, "complex128": 8}
