"""Writing random programs: what lines there are, and which is chosen next. See ``programs.py``.

A line is a template of which ``{x}`` and ``{y}`` are tensors that the program has, ``{y}`` one that broadcasts against
``{x}`` most often, and ``{a}`` and ``{b}`` new ones. A kind of lines has a weight, and the tensors that it may be
written about. Not written, as what PyTorch does then is known to be different, or anybody's guess:

- what changes tensors of inference mode outside of it, where PyTorch writes first and refuses then, and such tensors
  that require grad, of which it records what its own code does; memory exchanged between them and others; transforms
  of them, which wrap them, so that they can be saved, for inner graphs but not for the outer one;
- hooks on views that are in the graph only because their base is, and custom functions that write into leaves taken out
  of the graph: PyTorch crashes;
- batched gradients where tensors retain theirs, which are left with a part of the batch that nothing can be done to;
- ``detach_`` and ``requires_grad_`` of what shares memory with other tensors, ``set_`` and ``data = `` of what is in
  the graph, and sizes changed in place under ``no_grad``;
- writing where elements share places, or where what is read lies in the same memory but elsewhere, and gradients of
  what was written twice;
- where in memory ``slice_scatter`` and its like put their result: where the input lies, in a copy of all around it;
- the gradient of ``sgn`` of real numbers, which is zero and cannot be looked at;
- products whose difference is nothing but rounding, which depends on whether the compiler fuses them;
- indices that a node kept replaced by ``data = ``, which may point anywhere;
- bools where PyTorch's gradient would subtract or negate them, at which it complains in backward;
- numbers read as such of another width, where rounding becomes anything, and integers read as other numbers;
- sines of large numbers in single precision and halves, of which rounding is all that is left;
- the bits of numbers that are none, memory that nobody has written, and how equal numbers lie after a sort that need
  not be stable;
- which of equal numbers ``kthvalue`` and ``topk`` find, to which gradients go; complex numbers of halves, which there
  are not here; ``vmap`` over no numbers, where PyTorch looks at the first of them; second gradients of no numbers;
- means taken beside variances, and ``gelu``, where a number is infinite: that is there or NaN by how many there are;
- such means where they are zero, of which PyTorch finds what rounding leaves;
- fractions of coarse numbers that are whole but for rounding, which are nothing or nearly one, and what remains of
  coarse numbers after a division;
- third derivatives of ``layer_norm``, for which PyTorch takes the means as constants;
- views that are in the graph only because their base is, beside other tensors: PyTorch saves fewer of these;
- angles of zeros: whether one is negative is up to what a sum begins with, as that of ``layer_norm``;
- complex numbers beside infinities and NaN, which PyTorch spreads to both parts by multiplying with an alpha of one;
- gradients given to ``backward`` that are tensors of the program: PyTorch may keep their memory as the leaf's gradient;
- roots, angles, logarithms and powers of complex numbers of which an imaginary part is zero: PyTorch negates zeros or
  subtracts them from zero, as many numbers as there are, and its results lie on one side or the other of a cut;
- tensors of inference mode beside those hooks would crash on, of which PyTorch saves less than of others; or handed on
  by a custom function that requires grad; and tangents of them, or in inference mode, where PyTorch forgets them;
- derivatives row by row of functions without a result, over which PyTorch stumbles, and these and tangents of
  what shares places;
- what comes after a line at which PyTorch finds a fault of its own (``INTERNAL ASSERT FAILED``, a check without words),
  and that line;
- errors that depend on values, which come when the values do: indices out of bounds, too few elements for a mask.
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
    coarse,
    cut,
    inner,
    made_within,
    near_whole,
    normalized,
    short,
    stray,
    tangled,
)

if TYPE_CHECKING:
    from tests.parity.programs import Run

#: The dtypes of leaves, with weights.
LEAVES = {"float64": 20, "float32": 2, "complex128": 1, "int64": 1, "float16": 1, "bfloat16": 1}
SIZES = ((), (1,), (3,), (4,), (2, 3), (3, 2), (3, 3), (2, 1), (1, 3), (2, 3, 2))

UNARY = (
    "{x}.mul(0.5)", "{x}.add(1)", "{x} * 2", "1 - {x}", "{x} / 4", "{x}.sin()", "{x}.tanh()", "{x}.sigmoid()",
    "{x}.relu()", "{x}.neg()", "{x}.exp()", "{x}.square()", "{x}.clone()", "{x}.contiguous()", "{x}.sum()",
    "{x}.mean()", "{x}.sum(0)", "{x}.sum(-1, keepdim=True)", "{x}.reshape(-1)", "torch.cat([{x}, {x}])",
    "{x}.mul(0.5).softmax(-1)", "{x}.abs()", "{x} ** 2", "{x}.clamp(-0.5, 0.5)", "{x}.to(torch.float32)",
    "{x}.to(torch.float64)", "{x}.cumsum(0)", "{x}.flip(0)", "{x}.exp().prod()", "{x}.max()", "{x}.amax(0)",
    "{x}.max(0)[0]", "{x}.sort(dim=0, stable=True)[0]", "{x}.roll(1)", "{x}.tril()", "{x}.var()",
    "{x}.repeat(2, *[1] * {x}.dim())", "{x}.logsumexp(0)", "{x}[{x} > 0]", "{x}[[0]]",
    "{x}[torch.tensor([0, 0])]", "{x}[..., torch.tensor([0])]",
    "{x}.index_select(0, torch.tensor([0, 0]))", "{x}.gather(0, torch.zeros_like({x}, dtype=torch.int64))",
    "{x}.masked_fill({x} > 0, 2.0)", "torch.zeros_like({x})", "torch.ones_like({x})",
    "torch.complex({x}.double(), {x}.double())",
    "torch.nn.functional.pad({x}, (1, 1))", "{x}.long()", "{x}.to({x}.dtype, copy=True)",
    "{x}.unfold(0, 2, 1).sum(-1)", "{x}[[0], [0]]", "{x}[{x}.sum(-1).abs() > 1]", "{x}[None, {x} > 0]", "{x}[:, [0]]",
    "{x}[[True] * len({x})]", "{x}[torch.tensor(0)]", "{x}[torch.tensor([[0]])]", "{x}[0, ..., [0]]",
    "{x}[False]", "{x}[[0], :, [0]]", "{x}[None, [0, -1]]", "{x}.take(torch.tensor([0, -1]))",
    "{x}.masked_select({x} > 0)",
    "{x}.nonzero()", "{x}.std(0)", "{x}.norm()", "{x}.cumprod(-1)", "{x}.exp().log_softmax(0)", "{x}.trace()",
    "{x}.square().rsqrt()", "{x}.frac()", "{x}.expm1()", "{x}.mul(0.5).asinh()", "{x}.angle()",
    "{x}.amin(-1)", "{x}.min(-1, keepdim=True)[0]", "{x}.median()", "{x}.kthvalue(1, 0)[0].detach()",
    "{x}.topk(1, 0)[0].detach()",
    "{x}.diff(dim=0)", "{x}.repeat_interleave(2, 0)", "{x}.tile(2)", "{x}.rot90()", "{x}.diag_embed()",
    "{x}.half().to({x}.dtype)", "{x}.half()", "{x}.bfloat16()",
    "{x}.nansum()", "{x}.count_nonzero()", "{x}.all()", "{x}.argsort(0, stable=True)", "{x}.type_as({y})",
    "torch.special.logit({x}.sigmoid())", "torch.nn.functional.gelu({x})", "torch.nn.functional.layer_norm({x}, (3,))",
    "{x}.new_full((2,), 1.5)", "{x}.resolve_conj()", "{x}.detach().requires_grad_()", "{x}.clone().slice_scatter({x})",
    "{x}.clone().select_scatter({x}[0], 0, -1)", "{x}.clone().diagonal_scatter({x}.diagonal())",
    "{x}.view(-1).unfold(0, 2, 1).mean()",
)  # fmt: skip
VIEWS = (
    "{x}.view(-1)", "{x}.t()", "{x}[0]", "{x}[-1:]", "{x}[:, 1:]", "{x}[..., 0]", "{x}[None]", "{x}.unsqueeze(-1)",
    "{x}.squeeze()", "{x}.expand(2, *{x}.shape)", "{x}.transpose(0, -1)", "{x}.diagonal()", "{x}.narrow(0, 0, 1)",
    "{x}.detach()", "{x}.data", "{x}.view_as({x})", "{x}.flatten()", "{x}.select(-1, 0)", "{x}.movedim(0, -1)",
    "{x}[:]", "{x}.as_strided((2,), (1,))", "{x}[::2]", "{x}.unfold(0, 2, 2)", "{x}.real", "{x}.unfold(0, 2, 1)",
    "{x}.as_strided((2, 2), (1, 1))", "{x}.as_strided((2,), (2,), 1)", "{x}.as_strided((2, 3), (0, 1))",
    "{x}.diagonal(1)", "{x}.diagonal(0, -2, -1)", "{x}.mT", "{x}.T", "{x}.permute(tuple(range({x}.dim()))[::-1])",
    "{x}.expand_as({y})", "{x}.broadcast_to(2, *{x}.shape)", "{x}.unflatten(0, (1, -1))", "{x}.view(1, -1)",
    "{x}.view({x}.dtype)", "{x}.squeeze(0)", "{x}.squeeze((0, -1))", "{x}[None, 0]", "{x}[..., None, 0:1]",
    "{x}.swapaxes(0, -1)", "{x}.ravel()", "{x}.positive()", "{x}.imag", "{x}.conj()", "torch.view_as_real({x})",
    "torch.view_as_complex({x})", "{x}.split(1)[-1]", "{x}.chunk(2)[0]", "{x}.unbind(-1)[-1]",
    "{x}.tensor_split(2)[0]", "{x}.reshape({x}.shape)", "{x}.reshape(1, -1)", "{x}.H", "torch.atleast_2d({x})",
    "{x}[()]", "{x}[...]", "{x}[True]", "{x}.view(torch.complex128)", "{x}.view(torch.float64)",
    "{x}.view(torch.float32)", "{x}[..., ::2]", "{x}[1:]", "{x}[:, None]", "{x}[-1]", "{x}[0:0]", "{x}[0, 0]",
    "{x}[..., -1:]", "{x}[0, None, ..., 1:]", "{x}.view_as({y})", "{x}.reshape({y}.shape)", "{x}.swapdims(0, 1)",
    "{x}.moveaxis((0, -1), (-1, 0))", "{x}.adjoint()", "{x}.mH", "{x}.hsplit(1)[0]", "{x}.vsplit(2)[-1]",
    "{x}.split_with_sizes([1, 1])[-1]", "{x}.as_strided({x}.shape, {x}.stride())", "{x}.diagonal(-1)",
    "{x}.unfold(-1, 1, 1)", "{x}.flatten(0, -1)", "torch.atleast_1d({x})", "{x}.conj().imag", "{x}.expand(2, 3)",
    "{x}.expand(-1, *{x}.shape[1:])", "{x}.select(0, -1)", "{x}.detach()[0]", "{x}.view(*{x}.shape, 1)",
    "torch.unbind({x})[0]", "torch.narrow({x}, -1, 0, 1)", "{x}.as_strided((1,), (1,), {x}.storage_offset())",
    "{x}.T.T", "{x}.contiguous().view(-1)", "{x}.squeeze().unsqueeze(0)", "{x}.unsqueeze(0).expand(3, *{x}.shape)[1]",
)  # fmt: skip
SEVERAL = (
    "{a}, *_ = {x}.unbind()", "{a}, *_ = {x}.split(1)", "{a}, *_ = {x}.chunk(2)", "{a}, *_ = {x}.unbind(-1)",
    "{a}, {b} = {x}.chunk(2)", "{a}, {b} = {x}[:2]", "{a}, {b}, *_ = {x}.split([1, 1], -1)", "*_, {a} = {x}",
    "{a}, {b} = torch.broadcast_tensors({x}, {y})", "{a}, {b} = {x}.sort(dim=0, stable=True)",
    "{a}, {b} = Both.apply({x})", "{a}, {b} = Swap.apply({x}, {y})", "{a}, {b} = Halves.apply({x})",
    "{a}, {b} = {x}.hsplit(2)", "{a}, *_ = {x}.tensor_split(2)", "{a}, {b} = {x}.max(0)", "{a}, {b} = {x}.aminmax()",
    "{a}, {b} = torch.unbind({x})", "{a}, {b} = {x}.split((1, 2))", "{a}, {b} = torch.var_mean({x})",
    "{a}, {b} = torch.meshgrid({x}, {x}, indexing='ij')",
)  # fmt: skip
BINARY = (
    "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} / ({y}.square() + 1)", "torch.maximum({x}, {y})", "{x} @ {y}",
    "torch.where({x} > 0, {x}, {y}.to({x}.dtype))", "torch.stack([{x}, {y}])", "{x}.add({y}, alpha=2)",
    "torch.cat([{x}, {y}])", "torch.lerp({x}, {y}, 0.25)", "torch.addcmul({x}, {y}, {y})",
    "{x}.view(-1).index_put((torch.tensor([0]),), {y})", "torch.outer({x}.flatten(), {y}.flatten())",
    "{x}.add(0.5).masked_fill({x} > 0, {y})", "{x}.index_add(0, torch.tensor([0]), {y})",
    "torch.nn.functional.linear({x}, {y})", "{x} > {y}", "torch.dot({x}, {y})", "torch.hypot({x}, {y})",
    "torch.fmax({x}, {y})", "torch.addmm({x}, {y}, {y})", "torch.einsum('...,...->...', {x}, {y})",
    "{x}.cross(torch.ones_like({y}))",
    "torch.hstack([{x}, {y}])", "torch.atan2({x}, {y})", "torch.nn.functional.l1_loss({x}, {y}).clone()",
    "{x}.dist({y})",
    "{x}.scatter(0, torch.zeros_like({y}, dtype=torch.int64)[:1], {y}[:1])",
    "{x}.index_copy(0, torch.tensor([0]), {y})",
    "{x}.masked_scatter({x} > 0, {x}.exp())", "{x}.rsub({y})", "torch.logaddexp({x}, {y})", "torch.kron({x}, {y})",
    "{x}.clone().slice_scatter({y})", "{x}.clone().select_scatter({y}, 0, 0)", "{x}.fmod({y}.abs() + 2)",
    "torch.lerp({x}, {y}, {x})",
)  # fmt: skip
FUNCTIONS = (
    "Twice.apply({x})", "Square.apply({x})", "Identity.apply({x})", "Slice.apply({x})", "Grow.apply({x})",
    "Grow.apply({x}[...])", "Count.apply({x})", "Nothing.apply({x})", "Weighed.apply({x}, {y})", "Once.apply({x})",
    "copy.deepcopy({x})", "copy.copy({x})", "pickle.loads(pickle.dumps({x}))", "torch.nn.Parameter({x}).view_as({x})",
    "torch.utils.checkpoint.checkpoint(lambda v: v.sin() * v, {x}, use_reentrant=False)", "Scaled.apply({x}, 3)",
    "Scaled.apply({x}, {y}.detach())", "Grow.apply({x}.view(-1))", "Apart.apply({x})", "Nested.apply({x})",
    "torch.utils.checkpoint.checkpoint(lambda v: v * {y}, {x}, use_reentrant=True)", "Grown.apply({x}, {y})",
)  # fmt: skip
#: Those that write into one operand while they read the other.
WRITING = frozenset(("Grown.apply({x}, {y})",))
INPLACE = (
    "{x}.add_(1)", "{x}.mul_(0.5)", "{x}.neg_()", "{x}.zero_()", "{x}.fill_(0.25)", "{x}.relu_()", "{x}.sigmoid_()",
    "{x}.tanh_()", "{x}.sin_()", "{x}.exp_()", "{x}.clamp_(-0.5, 0.5)", "{x}[0] = 0.5", "{x}[..., 0] = 2",
    "{x}[:] = 1", "{x}[0] *= 2", "{x}[..., -1].add_(1)", "{x}.view(-1)[0:1].mul_(3)", "{x}.data.mul_(2)",
    "{x}.square_()", "{x} += 1", "{x}[{x} > 0] = 0.5", "{x}.masked_fill_({x} < 0, 0)", "{x}.div_(2)", "{x}.pow_(2)",
    "{x}.abs_()", "{x}.sqrt_()", "{x}.round_()", "{x}.sign_()", "{x}.clamp_min_(0)", "{x}.diagonal().fill_(1)",
    "{x}.diagonal()[0] += 1", "{x}.transpose(0, -1).mul_(2)", "{x}[[0]] = 0.5", "{x}[torch.tensor([0, 0])] = 2.0",
    "{x}.index_fill_(0, torch.tensor([0]), 0.5)", "{x}.T[0] = 1",
    "{x}.view(-1).index_put_((torch.tensor([0, 0]),), torch.ones((), dtype={x}.dtype), accumulate=True)",
    "{x}.as_strided((2,), (1,)).mul_(2)", "{x}.as_strided((1,), (1,)).zero_()", "{x}.unfold(0, 2, 2).add_(1)",
    "{x}.expand(2, *{x}.shape).add_(1)", "{x}[None, ..., None] = 3", "{x}[()] = 1",
    "{x}.scatter_(0, torch.zeros_like({x}, dtype=torch.int64), 2.0)", "{x}.squeeze().add_(1)",
    "{x}.split(1)[0].mul_(2)", "{x}.unbind()[0].add_(1)", "{x}.unbind()[0].zero_()", "{x}.detach().add_(1)",
    "torch.nn.functional.leaky_relu_({x})", "torch.nn.functional.dropout({x}, 0.0, inplace=True)",
    "{x}.logical_not_()", "{x} **= 2", "{x}.add_(4).reciprocal_()", "{x}.real.add_(1)",
    "torch.view_as_real({x}).mul_(2)", "torch.nn.init.ones_({x})", "{x}[[0], [0]] = 0.5", "{x}[:, [0]] = 0.5",
    "{x}[None, [0]] = 0.5", "{x}[True] = 1", "{x}[False] = 1", "{x}[..., torch.tensor(0)] = 2", "{x}[::2] += 1",
    "{x}[torch.tensor(0)] *= 2", "{x}[:, 1:] = 0", "{x}[0:0] = 5", "{x}[0, ..., None] = 2", "{x}.fill_diagonal_(2)",
    "{x}.tril_()", "{x}.cumsum_(0)", "{x}.clamp_max_(1)", "{x}.eq_(1)", "{x}.lerp_({x}, 0.5)", "{x}.expm1_()",
    "torch.relu_({x})", "torch.nn.functional.elu_({x})", "torch.nn.functional.silu({x}, inplace=True)",
    "torch.nn.functional.threshold_({x}, 0, 1)", "{x}.requires_grad_().mul_(2)", "{x}.data[0] = 1",
    "{x}.conj().mul_(2)", "{x}.imag.zero_()", "{x}.select(0, 0).t().fill_(1)", "{x}.chunk(2)[-1].add_(1)",
    "{x}.unflatten(0, (1, -1))[0] += 1", "torch.autograd.graph.increment_version({x})",
    "{x}.view(torch.float64).mul_(2)", "{x}.T.add_(1).T.mul_(2)",
    "{x}.view(-1)[::2].sigmoid_()", "{x}.unbind(-1)[-1].mul_(2)", "{x}.squeeze_().unsqueeze_(-1)", "{x}.nan_to_num_()",
)  # fmt: skip
INPLACE_BINARY = (
    "{x}.add_({y})", "{x}.mul_({y})", "{x}.copy_({y})", "{x}.sub_({y})", "{x}[0] = {y}", "{x}[0].copy_({y})",
    "{x} *= {y}", "{x}.addcmul_({y}, {y}, value=0.5)", "{x}.div_({y})", "{x}[{x} > 0] = {y}", "{x}[[0]] = {y}",
    "{x}.masked_fill_({x} > 0, {y})", "{x}.fill_({y})", "{x}.index_add_(0, torch.tensor([0]), {y})",
    "{x}.index_copy_(0, torch.tensor([0]), {y})",
    "{x}.view(-1).index_put_((torch.tensor([0]),), {y}, accumulate=True)", "{x}.diagonal().copy_({y})",
    "{x}.index_fill_(0, torch.tensor([0]), {y})",
    "{x}.scatter_add_(0, torch.zeros_like({y}, dtype=torch.int64), {y})", "{x}.expand(2, *{x}.shape).copy_({y})",
    "{x}.addcdiv_({y}, {y} + 3)", "{x}.maximum({y}).add_({y})", "{x}[..., 0] = {y}", "{x}[:] = {y}", "{x}[None] = {y}",
    "{x}[True] = {y}", "{x}[0] += {y}", "{x}[..., [0]] = {y}", "{x}.lerp_({y}, 0.5)", "{x}.t().copy_({y})",
    "{x}.index_put_((torch.tensor([0]),), {y})", "{x}.data.copy_({y})", "{x}.unbind(-1)[0].copy_({y})", "{x} /= {y}",
    "{x}.scatter_reduce_(0, torch.zeros_like({y}, dtype=torch.int64), {y}, 'sum')", "{x}.hypot_({y})", "{x} **= {y}",
    "{x}.masked_scatter_({x} > 0, {x}.exp())", "{x}.where({x} > 0, {y}).mul_(2)", "{x}.view(-1)[:1].addcmul_({y}, {y})",
    "{x}[:, None] = {y}", "{x}[1:] -= {y}", "{x}.T[...] = {y}", "{x}.real.copy_({y})", "{x}.atan2_({y})",
)  # fmt: skip
OUT = (
    "torch.add({y}, 1, out={x})", "torch.mul({y}, {y}, out={x})", "torch.sum({y}, 0, out={x})",
    "torch.exp({y}, out={x})", "torch.cat([{y}, {y}], out={x})", "torch.stack([{y}], out={x})",
    "torch.max({y}, 0, out=({x}, torch.tensor(0)))",
)  # fmt: skip
MARKS = (
    "{x}.retain_grad()", "{x}.grad = None", "{x}.register_hook(hook('{x}'))",
    "{x}.register_hook(hook('{x} by 2', 2.0))", "del {x}",
    "{x}.register_post_accumulate_grad_hook(note('after {x}'))", "{x}.grad_fn.register_hook(note('node of {x}'))",
    "{x}.grad_fn.register_prehook(note('before node of {x}'))", "{x}.grad.mul_(0.5)",
    "{x}.grad_fn.register_prehook(scale('before {x}', 2.0))", "{x}.grad_fn.register_hook(scale('behind {x}', 0.5))",
    "{x}.register_hook(hook('removed')).remove()", "{x}.register_hook(lambda g: g[0])",
    "{x}.register_hook(lambda g: 1)", "{x}.grad = torch.ones_like({x})", "{x}.grad.zero_()", "{x}.grad = {y}",
    "{x}.grad.requires_grad_()", "{x}.grad = {y}.grad",
    "torch.autograd.graph.register_multi_grad_hook([{x}, {y}], note('{x} and {y}'))",
    "torch.autograd.graph.register_multi_grad_hook([{x}, {y}], note('{x} or {y}'), mode='any')",
    "{x}.grad_fn.next_functions[0][0].register_hook(note('node before {x}'))", "{x}.grad = {x}.detach()",
    "{x}.grad_fn.next_functions[0][0].register_prehook(scale('before the node before {x}', 2.0))",
)  # fmt: skip
ALONE = (
    "{x}.requires_grad_()", "{x}.requires_grad_(False)", "{x}.requires_grad = False", "{x}.requires_grad = True",
    "{x}.detach_()",
)  # fmt: skip
MEMORY = (
    "{x}.set_({y})", "{x}.data = {y}", "{x}.data = {x}.data * 2", "{x}.data = {y}.data", "{x}.set_()",
    "{x}.set_({y}.untyped_storage(), 0, (1,), (1,))", "{x}.data = {x}.data.t()", "{x}.resize_(1)",
    "{x}.data = {x}[0]", "{x}.data = {y}.clone()", "{x}.set_({y}.detach())", "{x}.data.set_({y}.data)",
)  # fmt: skip
RESHAPING = (
    "{x}.t_()", "{x}.unsqueeze_(0)", "{x}.squeeze_()", "{x}.transpose_(0, -1)", "{x}.as_strided_((1,), (1,))",
    "{x}.swapaxes_(0, 1)", "{x}.squeeze_(0)",
)  # fmt: skip
BACKWARD = (
    "{x}.sum().backward()", "{x}.backward()", "{x}.sum().backward(retain_graph=True)",
    "{x}.backward(torch.ones_like({x}), retain_graph=True)", "{x}.sum().backward(create_graph=True)",
    "{x}.sum().backward(inputs=[{y}])", "torch.autograd.backward([{x}.sum(), {y}.sum()])", "{x}.backward({y}.clone())",
    "{x}.backward(torch.ones_like({x}).expand({x}.shape))",
    "torch.autograd.backward([{x}, {y}], [None, torch.ones_like({y})])", "({x}.sum() * {x}.grad.sum()).backward()",
    "{x}.sum().backward(retain_graph=True, inputs=[{x}])", "{x}.sum().backward(retain_graph=True, inputs=[{x}, {y}])",
    "torch.autograd.backward({x}, {x}.detach().clone(), inputs={y})",
    "{x}.backward(torch.ones_like({x}), create_graph=True)",
    "{x}.sum().backward(torch.tensor(2.0, dtype={x}.dtype))", "{x}.square().sum().backward(create_graph=True)",
    "{y}.grad.sum().backward(inputs=[{x}])", "torch.autograd.backward([{x}.sum(), {x}.mean()])",
)  # fmt: skip
GRADIENTS = (
    "torch.autograd.grad({x}.sum(), {y})[0]", "torch.autograd.grad({x}.sum(), {y}, allow_unused=True)[0]",
    "torch.autograd.grad({x}.sum(), [{x}, {y}], retain_graph=True, materialize_grads=True)[1]",
    "torch.autograd.grad((torch.autograd.grad({x}.sum(), {y}, create_graph=True)[0] * "
    "{y}.square()).sum(), {y})[0]",
    "torch.autograd.grad(torch.autograd.grad({x}.square().sum(), {y}, "
    "create_graph=True)[0].square().sum(), {y})[0]",
    "torch.autograd.grad(torch.autograd.grad(torch.autograd.grad({x}.sin().sum(), {y}, "
    "create_graph=True)[0].sum(), {y}, create_graph=True)[0].sum(), {y})[0]",
    "torch.autograd.grad({x}.clone(), {y}, torch.eye({x}.numel(), dtype={x}.dtype).view(-1, *{x}.shape), "
    "is_grads_batched=True)[0]",
    "torch.autograd.grad({x}.clone(), {y}, {x}.detach())[0]",
    "torch.autograd.grad([{x}.sum(), {y}.sum()], [{x}, {y}], retain_graph=True)[1]",
    "torch.autograd.functional.vjp(lambda v: v * {x}, {y}, torch.ones_like({y} * {x}))[1]",
    "torch.func.grad(lambda v: (v * {x}).sum().real)({y}).detach()",
    "torch.func.jvp(lambda v: v.sin(), ({x},), ({x},))[1].detach()", "{x}.grad.detach()",
    "torch.autograd.grad({x}.sum(), torch.autograd.graph.get_gradient_edge({y}))[0]",
    "torch.autograd.grad({x}.sum(), [{y}], retain_graph=True, allow_unused=True, materialize_grads=False)[0]",
    "torch.autograd.grad([{x}, {y}], {y}, [torch.ones_like({x}), None], allow_unused=True)[0]",
    "torch.autograd.grad({x}.square().sum(), {y}, create_graph=True)[0].detach()",
    "torch.autograd.functional.jvp(lambda v: v * v, {x}, {x})[1]", "torch.func.vmap(lambda v: v * 2)({x}).detach()",
    "torch.autograd.functional.hvp(lambda v: v.pow(3).sum(), {x}, {x})[1]",
    "torch.func.vjp(lambda v: v.sin().sum(), {x})[1](torch.ones((), dtype={x}.dtype))[0].detach()",
    "tangent(lambda v: v.sin() * v, {x}.detach(), torch.ones_like({x}))",
    "tangent(lambda v: v * {y}, {x}, {x}.detach())",
    "tangent(lambda v: v.clone().mul_({y}), {x}.detach(), {x}.detach())",
    "tangent(lambda v: v[0].exp(), {x}, {x}.detach())",
    "tangent(lambda v: v.exp().add_(1)[0].mul_(2), {x}.detach(), torch.ones_like({x}))",
    "tangent(lambda v: v.cumsum(0).view(-1)[1:], {x}, torch.ones_like({x}))",
    "torch.func.jacrev(lambda v: v * v.sum())({x}).detach()", "torch.func.jacfwd(lambda v: v.sin())({x}).detach()",
    "torch.func.hessian(lambda v: v.pow(3).sum())({x}).detach()",
    "torch.func.vmap(torch.func.grad(lambda v: v.sin().sum()))({x}).detach()",
    "torch.autograd.functional.jacobian(lambda v: v * {x}, {y})",
    "torch.autograd.functional.hessian(lambda v: v.pow(3).sum(), {x})",
    "torch.autograd.functional.vhp(lambda v: v.pow(3).sum(), {x}, {x})[1]",
    "torch.func.functionalize(lambda v: v.clone().add_(1).view(-1).mul_(2))({x}).detach()",
    "torch.func.linearize(lambda v: v.sin() * v, {x})[1]({x}).detach()",
)  # fmt: skip

#: What lines are written in, where they are written in a block of their own.
BLOCKS = (
    "torch.no_grad()",
    "torch.no_grad()",
    "torch.no_grad()",
    "torch.enable_grad()",
    "torch.set_grad_enabled(False)",
    "torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t.clone())",
    "torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t)",
    "torch.autograd.graph.save_on_cpu()",
    "torch.autograd.set_multithreading_enabled(False)",
    "torch.inference_mode()",
    "torch.inference_mode()",
    "torch.inference_mode(False)",
)

#: What is not written in inference mode: what makes leaves there, gradients that are kept, what asks leaves for nodes.
NEVER_WITHIN = r"tangent|linearize|hessian|jacfwd|requires_grad|Parameter|\bcopy\.|pickle|backward\(|multi_grad|edge"

#: How many numbers a tensor has at most that a line is about: some lines make squares of them.
LARGEST = 200

#: Of what PyTorch's gradients subtract or negate an operand, which bools are not.
NO_BOOLS = r"logaddexp|atan2|\*\*"

#: What makes derivatives row by row, or in one direction.
ROWS = r"jacobian|hessian|jac(rev|fwd)|linearize|tangent"

#: Of what the results jump where an imaginary part is zero, from one sign of it to the other.
JUMPS = r"sqrt|angle|logsumexp|\*\*"

#: What PyTorch makes of an infinity by how many numbers there are.
SPREAD = r"var_mean|gelu"

#: What derives three times.
THRICE = "grad(torch.autograd.grad(torch.autograd.grad("

#: What goes round, so that of large numbers only what was rounded away matters.
TURNS = r"\.sin\(|Both|tangent|linearize|jvp|jac|hessian|checkpoint"

#: What writes into a tensor what is there: outside of inference mode it is refused for tensors made within.
AS_IT_IS = (
    "{x}.mul_(1)", "{x}.add_(0)", "{x}.copy_({x}.clone())", "{x}[:1] += 0", "{x}.view(-1).mul_(1)",
    "{x}[...] = {x} * 1", "torch.mul({x}, 1, out={x})", "{x}.data.mul_(1)", "{x}.requires_grad_()",
    "{x}.detach().mul_(1)",
)  # fmt: skip

#: Hooks whose handles are kept, to be removed later.
KEPT = (
    "{x}.register_hook(hook('kept {x}', 3.0))", "{x}.register_post_accumulate_grad_hook(note('kept after {x}'))",
    "{x}.grad_fn.register_hook(note('kept node of {x}'))",
    "{x}.grad_fn.register_prehook(scale('kept before {x}', 2.0))",
)  # fmt: skip


class Author:
    """Writes a program line by line, while it runs.

    Args:
        chance: where choices come from.
        run: a run in PyTorch.
    """

    def __init__(self, chance: random.Random, run: Run):
        self.chance = chance
        self.run = run
        self.count = 0
        #: What the next line is written in, if in anything.
        self.block: str | None = None
        #: The tensors, by address, that were taken out of the graph in place.
        self.taken: set[int] = set()
        self.kinds = {
            self.unary: 5, self.binary: 5, self.view: 6, self.several: 1, self.function: 0.8, self.inplace: 6,
            self.out: 0.5, self.mark: 3, self.kept: 0.5, self.removal: 0.5, self.status: 0.5, self.memory: 0.4,
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
            return self.leaf()  # what was chosen may be fit for inference mode only
        if self.inference and self.chance.random() < 0.3 and re.match(r"x\d+ = ", line):
            return line.replace(" = ", f" = {self.block}(lambda: ", 1) + ")()"
        return f"with {self.block}: {line}"

    def unforeseen(self, line: str, given: list[Any]) -> bool:
        """Whether nobody knows what a line does with these tensors, given what they hold and where they are from."""
        within = any(t.is_inference() for t in given)
        return (
            any(t.numel() > LARGEST for t in given)
            or ("atan2" in line and any(bool((t.data == 0).any()) for t in given))
            or (re.search(JUMPS, line) is not None and any(cut(t) for t in given))
            or (re.search(SPREAD, line) is not None and not all(map(self.finite, given)))
            or ("var_mean" in line and any(map(balanced, given)))
            or (".frac" in line and any(map(near_whole, given)))
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
        """Whether all its numbers are numbers, and finite."""
        return bool(self.run.torch.isfinite(t.data).all())

    @property
    def inference(self) -> bool:
        """Whether the next line is written in inference mode."""
        return self.block == "torch.inference_mode()"

    def writable(self, t: Any) -> bool:
        """Whether the next line may write into a tensor."""
        return self.inference or not t.is_inference()

    # ---------------------------------------------------------------- about which tensors

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

    def fill(self, templates: tuple[str, ...], tensors: dict[str, Any]) -> str:
        x = self.pick(tensors)
        template = self.chance.choice(templates)
        if "index_" in template and 0 in tensors[x].shape:
            template = templates[0]  # no position is in nothing, which PyTorch says in backward only
        new = {name: self.new() for name in "ab" if f"{{{name}}}" in template}
        others = apart(tensors, x) if template in WRITING else tensors
        return template.format(x=x, y=self.partner(others, tensors[x]), **new)

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
        halves = [n for n, t in tensors.items() if str(t.dtype) in ("torch.float16", "torch.bfloat16")]
        return self.leaf() if any(f"view_as_complex({n})" in line for n in halves) else line

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
            given = {n: t for n, t in given.items() if n != x}  # what is read must lie elsewhere
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

    def status(self, tensors: dict[str, Any]) -> str:
        plain = {n: t for n, t in tensors.items() if self.writable(t) and alone(t, tensors)}
        plain = {n: t for n, t in plain.items() if n not in self.run.uncounted}  # some are views of nobody knows what
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
