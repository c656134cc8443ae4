"""The lines of random programs: templates that ``author.py`` fills in.

In each, ``{x}`` and ``{y}`` are tensors of the program, ``{a}`` and ``{b}`` new names. The custom functions are in
``functions.py``.
"""

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
    "torch.utils.checkpoint.checkpoint(lambda v: v.exp().tanh().view(-1) * 2, {x}, use_reentrant=False)",
    "torch.utils.checkpoint.checkpoint(lambda v, w: (v * w, v + w), {x}, {y}, use_reentrant=False)[0]",
    "torch.compile(lambda v: v.sin() * v, backend='eager')({x})",
    "torch.compile(lambda v, w: v[0].view(-1) * w, backend='eager')({x}, {y})",
    "torch.utils.checkpoint.checkpoint_sequential([torch.sin, torch.exp], 2, {x}, use_reentrant=False)",
)  # fmt: skip
#: Lines that write into one operand while they read the other.
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
    "torch.max({y}, 0, out=({x}, torch.tensor(0)))", "torch.sort({y}, 0, True, out=({x}, torch.tensor(0)))",
    "torch.cummax({y}, 0, out=({x}, torch.tensor(0)))", "torch.min({y}, -1, True, out=({x}, torch.tensor(0)))",
    "torch.aminmax({y}, out=({x}, torch.zeros_like({y})))", "torch.frexp({y}, out=({x}, torch.tensor(0).int()))",
    "torch.kthvalue({y}, 1, 0, out=({x}, torch.tensor(0)))",
    "torch.outer({y}, {y}, out={x})", "torch.cumsum({y}, 0, out={x})", "torch.clamp({y}, 0, 1, out={x})",
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
    "torch.func.grad(lambda u: torch.func.grad(lambda v: (v * v * u).sum())(u).sum())({x}).detach()",
    "torch.func.grad(lambda v: torch.func.vjp(lambda u: u * v, v)[1]({x})[0].sum())({x}).detach()",
    "torch.func.jvp(torch.func.grad(lambda v: v.pow(3).sum()), ({x},), ({x},))[1].detach()",
    "torch.func.grad(lambda v: torch.func.jvp(lambda u: u * u, (v,), ({x},))[1].sum())({x}).detach()",
    "torch.func.vmap(torch.func.vmap(lambda v: v * v.exp()))({x}).detach()",
    "torch.func.vmap(torch.func.jacrev(lambda v: v * v.sum()))({x}).detach()",
    "torch.func.vmap(torch.func.jacfwd(lambda v: v * v.sum()), randomness='same')({x}).detach()",
    "torch.func.jacrev(torch.func.vmap(lambda v: v.exp()))({x}).detach()",
    "torch.func.jacfwd(torch.func.grad(lambda v: (v * v * {x}).sum()))({y}).detach()",
    "torch.func.vmap(lambda v: v[0] * v, in_dims=-1, out_dims=-1)({x}).detach()",
    "torch.func.vmap(torch.func.grad(lambda v, w: (v * w).sum()), in_dims=(0, None))({x}, {y}).detach()",
    "torch.func.vmap(lambda v: torch.func.grad(lambda u: (u * v).sum())({y}))({x}).detach()",
    "torch.func.grad(lambda v: v.clone().add_(v).mul_({x}).sum())({y}).detach()",
    "torch.func.grad_and_value(lambda v: v.square().sum())({x})[0].detach()",
    "torch.func.grad(lambda v: torch.autograd.grad((v * v).sum(), v, create_graph=True)[0].sum())({x}).detach()",
)  # fmt: skip

#: The blocks that lines may be written in.
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
    "torch.utils.checkpoint.set_checkpoint_early_stop(False)",
)

#: Lines that write existing values into a tensor: outside of inference mode they raise for inference tensors.
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

#: Uses of a module ``{m}``: calls with valid and invalid inputs, and names for its parameters.
CALLS = (
    "{a} = {m}({x})", "{a} = {m}({x})", "{a} = {m}({x})", "{a} = {m}({x})", "{a} = {m}({x}.double())",
    "{a}, {b} = {m}({x}, {x}, {x})", "{a}, _ = {m}({x})", "{a}, ({b}, _) = {m}({x})", "{a} = {m}({x}, {y})",
    "{a} = {m}({x}.long().abs() % 4)", "{a} = next({m}.parameters())", "{a} = [*{m}.parameters()][-1]",
    "{a} = {m}.weight", "{a} = {m}.bias", "{a} = {m}.running_mean", "{a} = [*{m}.buffers()][-1]",
    "{a} = torch.func.functional_call({m}, {{}}, ({x},))", "{a} = copy.deepcopy({m})({x})",
    "{a} = torch.utils.checkpoint.checkpoint({m}, {x}, use_reentrant=False)",
    "{a} = torch.nn.utils.parameters_to_vector({m}.parameters())", "{m}({x}).sum().backward()",
    "{m}({x}).square().mean().backward()",
)  # fmt: skip
STATES = (
    "{m}.eval()", "{m}.train()", "{m}.zero_grad()", "{m}.zero_grad(set_to_none=False)", "{m}.requires_grad_(False)",
    "{m}.requires_grad_()", "{m}.register_forward_hook(lambda m, args, out: note('forward of {m}')())",
    "{m}.register_full_backward_hook(lambda m, grads, outs: note('backward of {m}')())",
    "{m}.register_forward_pre_hook(lambda m, args: (args[0] * 2, *args[1:]))",
    "torch.nn.utils.clip_grad_norm_({m}.parameters(), 1.0)", "torch.nn.utils.clip_grad_value_({m}.parameters(), 0.5)",
    "{m}.load_state_dict({{k: v * 0.5 for k, v in {m}.state_dict().items()}})",
    "torch.nn.init.constant_({m}.weight, 0.5)",
)  # fmt: skip
#: Updates of the parameters of a module, or of tensors. None divides by numbers that may be only rounding errors, and
#: PyTorch writes into parameters once per step, as compat always does.
OPTIMIZERS = (
    "torch.optim.SGD({p}, lr=0.1)", "torch.optim.SGD({p}, lr=0.1, momentum=0.9)",
    "torch.optim.SGD({p}, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)",
    "torch.optim.Adam({p}, lr=0.1, eps=0.1)", "torch.optim.AdamW({p}, lr=0.1, eps=0.1, weight_decay=0)",
    "torch.optim.Adam({p}, lr=0.1, eps=0.1, amsgrad=True, foreach=False)", "torch.optim.Adagrad({p}, eps=0.1)",
    "torch.optim.RMSprop({p}, eps=0.1, momentum=0.5)", "torch.optim.SGD({p}, lr=0.1, maximize=True, foreach=False)",
)  # fmt: skip
STEPS = ("{o}.step()", "{o}.step()", "{o}.step()", "{o}.zero_grad()", "{o}.zero_grad(set_to_none=False)",
    "{o}.load_state_dict({o}.state_dict())", "{o}.param_groups[0].update(lr=0.01)")  # fmt: skip
