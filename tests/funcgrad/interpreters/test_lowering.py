"""Lowering: emitted copies of operations equal the rules' results, and XLA's calling convention is JAX's."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.interpreters import mlir

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType, Program
from funcgrad.core.primitive import Primitive
from funcgrad.interpreters import lower
from funcgrad.interpreters.lower import lowered
from funcgrad.interpreters.staging import stage
from funcgrad.primitives import contraction, elementwise, reductions, shape

ROOT = Path(__file__).resolve().parents[3]


def module_of(program: Program) -> str:
    arguments = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in program.input_types]
    return jax.jit(lowered(program)).lower(*arguments).as_text()


def operations(text: str) -> list[str]:
    """The operations of a module's main function in order, values and functions without their names."""
    lines = text[text.index("@main") :].splitlines()[1:]
    return [re.sub(r"[%@][\w#]+", "%", line.strip()) for line in lines[: lines.index("  }")] if " return " not in line]


def run(program: Program, *arguments: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.jit(lowered(program))(*arguments)]


# ---------------------------------------------------------------- copies against rules

SHAPES = ((2, 3), (5, 1), (0, 4), (2, 3), (2, 3), (7, 2), (2, 3))
ELEMENTWISE = sorted((v for v in vars(elementwise).values() if isinstance(v, Primitive)), key=lambda p: p.name)
PARAMS = {
    "integer_pow": {"exponent": 3}, "cast": {"dtype": dtypes.float16}, "bitcast": {"dtype": dtypes.int32},
    "reduce_precision": {"exponent_bits": 5, "mantissa_bits": 3},
}  # fmt: skip
DTYPES = (dtypes.float32, dtypes.bfloat16, dtypes.int32, dtypes.uint8, dtypes.bool_, dtypes.complex64)


def operand_types(primitive: Primitive, dtype: np.dtype, shape: tuple[int, ...]) -> list[ArrayType] | None:
    """Types of one, two or three operands that the primitive accepts."""
    for count in (1, 2, 3):
        for first in (dtype, dtypes.bool_):
            types = [ArrayType(shape, first), *[ArrayType(shape, dtype)] * (count - 1)]
            params = PARAMS.get(primitive.name, {})
            try:
                primitive.output_types(types, params)
                jax.eval_shape(
                    partial(primitive.lower, **params), *[jax.ShapeDtypeStruct(shape, t.dtype) for t in types]
                )
            except (TypeError, ValueError):
                continue
            return types
    return None


def equations_of(primitive: Primitive, all_types: Sequence[Sequence[ArrayType]], params: Any) -> Program:
    """One equation for each list of operand types; ``params`` returns the parameters for a list of types."""
    counts = [len(types) for types in all_types]

    def f(*operands: Any) -> list[Any]:
        given = iter(operands)
        results = []
        for count, types in zip(counts, all_types, strict=True):
            results.append(primitive(*[next(given) for _ in range(count)], **params(types)))
        return results

    return stage(f, [t for types in all_types for t in types])


def check_copies(primitive: Primitive, all_types: Sequence[Sequence[ArrayType]], params: Any) -> None:
    """A program of many such equations has the operations that JAX makes of the rules, one by one."""
    wanted = []
    for types in all_types:
        rule = jax.jit(partial(primitive.lower, **params(types)))
        wanted += operations(rule.lower(*[jax.ShapeDtypeStruct(t.shape, t.dtype) for t in types]).as_text())
    program = equations_of(primitive, all_types, params)
    lower._texts.clear()
    assert operations(module_of(program)) == wanted
    assert operations(module_of(program)) == wanted, "from the recipes that are left of the first time"


@pytest.mark.parametrize("primitive", ELEMENTWISE, ids=lambda p: p.name)
def test_copies_of_elementwise_primitives_follow_the_rule(primitive):
    takes = [d for d in DTYPES if all(operand_types(primitive, d, s) for s in SHAPES)]
    assert takes, "no dtype tried is taken: say what this primitive takes"
    for dtype in takes:
        types = [operand_types(primitive, dtype, s) for s in SHAPES]
        check_copies(primitive, types, lambda _: PARAMS.get(primitive.name, {}))


def of_sizes(*sizes: tuple[int, ...]) -> list[list[ArrayType]]:
    return [[ArrayType(s, dtypes.float32)] for s in sizes]


PAIRS = [((2, 3), (3, 4)), ((5, 1), (1, 0)), ((2, 3), (3, 4)), ((2, 3), (3, 4)), ((4, 4), (4, 4))]
MATRICES = [[ArrayType(a, dtypes.float32), ArrayType(b, dtypes.float32)] for a, b in PAIRS]
SIZE_FREE = {
    "broadcast": (shape.broadcast, of_sizes((3,), (1,), (3,), (5,)), lambda t: {"shape": (2, t[0].size), "dims": (1,)}),
    "reshape": (shape.reshape, of_sizes((2, 3), (1, 1), (2, 3), (4, 5)), lambda t: {"shape": (t[0].size,)}),
    "concatenate": (
        shape.concatenate, MATRICES[-1:] * 3 + [of_sizes((2, 4))[0] + of_sizes((1, 4))[0]], lambda t: {"axis": 0},
    ),
    "dot": (contraction.dot, MATRICES, lambda t: {"contract": ((1,), (0,)), "batch": ((), ())}),
    "prod": (reductions.reduce_prod, of_sizes(*SHAPES), lambda t: {"axes": (1,)}),
    "reverse": (shape.reverse, of_sizes(*SHAPES), lambda t: {"axes": (0,)}),
    "sum": (reductions.reduce_sum, of_sizes(*SHAPES), lambda t: {"axes": (0,)}),
    "transpose": (shape.transpose, of_sizes(*SHAPES), lambda t: {"permutation": (1, 0)}),
    "all": (reductions.reduce_all, [[ArrayType(s, dtypes.bool_)] for s in SHAPES], lambda t: {"axes": (0, 1)}),
    "any": (reductions.reduce_any, [[ArrayType(s, dtypes.bool_)] for s in SHAPES], lambda t: {"axes": ()}),
}  # fmt: skip


@pytest.mark.parametrize("name", lower._SIZE_FREE)
def test_copies_of_size_free_primitives_follow_the_rule(name):
    primitive, types, params = SIZE_FREE[name]
    check_copies(primitive, types, params)


def test_a_copied_operation_that_broadcasts_computes_the_same():
    sizes = [(3, 4), (4,), (3, 1), (), (3, 4), (1, 4), (3, 4), (4,)]
    operands = [np.random.default_rng(i).normal(size=s).astype(np.float32) for i, s in enumerate(sizes)]
    pairs = [(a, b) for a in operands for b in operands]
    program = stage(
        lambda *xs: [elementwise.sub(a, b) for a in xs for b in xs], [ArrayType(s, dtypes.float32) for s in sizes]
    )
    for got, (a, b) in zip(run(program, *operands), pairs, strict=True):
        np.testing.assert_array_equal(got, a - b)


def test_a_repeated_loop_captures_its_own_operands():
    """Operations inside a loop's body may read values from outside; each copy must read its own."""

    def power_of_two_above(x: Any, bound: Any) -> Any:
        return jax.lax.while_loop(lambda v: jnp.all(v < bound), lambda v: v + v * (bound / bound), x)

    above = Primitive("above", infer=lambda x, bound: x, lower=power_of_two_above)
    bounds = [1.5, 3.0, 100.0, 7.0, 33.0]
    types = [ArrayType((2,), dtypes.float32), *[ArrayType((), dtypes.float32)] * len(bounds)]
    program = stage(lambda x, *bs: [above(x, b) for b in bs], types)
    found = run(program, np.ones(2, np.float32), *map(np.float32, bounds))
    assert [r.tolist() for r in found] == [[w, w] for w in (2.0, 4.0, 128.0, 8.0, 64.0)]


def test_platforms_chosen_at_run_time_survive_copying():
    """A rule that differs by platform becomes a choice in a module for several platforms."""

    def where_am_i(x: Any) -> Any:
        return jax.lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x + 2)

    here = Primitive("here", infer=lambda x: x, lower=where_am_i)
    program = stage(lambda x: [here(here(here(here(x))))], [ArrayType((2,), dtypes.float32)])
    argument = jax.ShapeDtypeStruct((2,), np.float32)
    exported = jax.export.export(jax.jit(lowered(program)), platforms=("cpu", "tpu"))(argument)
    np.testing.assert_array_equal(exported.call(jnp.zeros(2, np.float32))[0], [4.0, 4.0])


def test_recipes_are_of_one_platform():
    """JAX may lower one of its primitives differently for each."""
    wave_p = jax.extend.core.Primitive("wave")
    wave_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(wave_p, mlir.lower_fun(jax.lax.sin, multiple_results=False), platform="cpu")
    mlir.register_lowering(wave_p, mlir.lower_fun(jax.lax.cos, multiple_results=False), platform="tpu")
    wave = Primitive("wave", infer=lambda x: x, lower=wave_p.bind, elementwise=True)
    program = jax.jit(lowered(stage(lambda x: [wave(x)], [ArrayType((2,), dtypes.float32)])))
    argument = jax.ShapeDtypeStruct((2,), np.float32)
    for platform, operation in (("cpu", "sine"), ("tpu", "cosine"), ("cpu", "sine"), ("tpu", "cosine")):
        assert f"stablehlo.{operation}" in program.trace(argument).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("platforms", [["cpu"], ["cuda"], ["cpu", "cuda"]])
def test_programs_for_one_platform_have_no_conditionals(platforms):
    image, kernel = fnp.ones((2, 3, 8, 8)), fnp.ones((4, 3, 3, 3))
    x, y = fnp.ones((256, 256)), fnp.ones((256, 16))
    assert contraction.worth_turning(x, y, ((0,), (0,)), ((), ()))
    for f, operands in ((fg.nn.conv, (image, kernel)), (lambda x, y: x.T @ y, (x, y))):
        text = jax.export.export(fg.jit(f).compiled, platforms=platforms)(*operands).mlir_module()
        assert ("stablehlo.case" in text) == (len(platforms) > 1)


def test_equations_that_differ_in_the_order_of_parameters_only_are_distinguished():
    """Contracting and batch axes differ only in their positions here: the products must not be confused."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    none, first = ((), ()), ((0,), (0,))

    def f(a: Any, b: Any) -> list[Any]:
        outer = lambda: contraction.dot(a, b, contract=none, batch=first)
        product = lambda: contraction.dot(a, b, batch=none, contract=first)
        return [outer(), product(), outer(), product(), outer(), product()]

    found = run(stage(f, [ArrayType((2, 3), dtypes.float32)] * 2), x, x)
    for outer, product in zip(found[::2], found[1::2], strict=True):
        np.testing.assert_array_equal(outer, x[:, :, None] * x[:, None, :])
        np.testing.assert_array_equal(product, x.T @ x)


def test_a_call_of_a_function_is_not_copied_to_other_sizes():
    """A rule's jitted part becomes a function in the module, which takes arrays of one size."""
    called = Primitive("called", infer=lambda x: x, lower=jax.jit(lambda x: x * 2 + 1), elementwise=True)
    sizes = [(2,), (3,), (2,), (2,)]
    program = stage(lambda *xs: [called(x) for x in xs], [ArrayType(s, dtypes.float32) for s in sizes])
    assert "call @" in module_of(program)
    for size, result in zip(sizes, run(program, *[np.ones(s, np.float32) for s in sizes]), strict=True):
        np.testing.assert_array_equal(result, np.full(size, 3.0))


def test_lowering_rules_may_contain_unused_equations():
    kept = Primitive("kept", infer=lambda x: x, lower=lambda x: (-x, x)[1], elementwise=True)
    sizes = [(2,), (3,), (2,), (2,)]
    program = stage(lambda *xs: [kept(x) for x in xs], [ArrayType(s, dtypes.float32) for s in sizes])
    for size, result in zip(sizes, run(program, *[np.ones(s, np.float32) for s in sizes]), strict=True):
        np.testing.assert_array_equal(result, np.ones(size))


# ---------------------------------------------------------------- the emitted module


def test_inputs_constants_and_literals_may_be_results():
    held = np.arange(3.0)

    def f(x: Any, y: Any) -> Any:
        return {"input": x, "twice": (y, y), "constant": fnp.asarray(held), "literal": np.float32(2.5), "nothing": None}

    found = fg.jit(f)(1.5, jnp.arange(2))
    assert found["nothing"] is None
    assert float(found["input"]) == 1.5 and float(found["literal"]) == 2.5
    assert [x.tolist() for x in found["twice"]] == [[0, 1], [0, 1]]
    np.testing.assert_array_equal(found["constant"], held)
    assert found["constant"].dtype == np.float64 and found["input"].dtype == np.float32


def test_a_result_that_is_no_input_of_ours_is_an_empty_tree():
    assert fg.jit(lambda x: ())(1.0) == ()


@pytest.mark.parametrize("sizes", [(0,), (0, 3), (3, 0)])
def test_zero_size_arrays(sizes):
    x = jnp.zeros(sizes, np.float32)
    f = lambda x: fnp.sum(fnp.tanh(x) * 2.0 + fnp.exp(x))
    value, gradient = fg.jit(fg.value_and_grad(f))(x)
    assert float(value) == 0.0 and gradient.shape == sizes and gradient.dtype == np.float32


LITERALS = [
    np.bool_(True), np.int8(-3), np.uint64(2**63 + 1), np.int64(-(2**62)), np.float16(1.5), ml_dtypes.bfloat16(-0.5),
    np.float32(np.inf), np.float32(np.nan), np.float32(-0.0), np.float64(1 / 3), np.complex64(1 - 2j), np.complex128(3),
]  # fmt: skip


@pytest.mark.parametrize("value", LITERALS, ids=lambda v: f"{v.dtype}-{v}")
def test_literals_keep_every_bit(value):
    program = stage(lambda: [shape.broadcast(value, shape=(2,), dims=()), value], [])
    assert "with" not in repr(program), "a scalar is written into the program, not held beside it"
    spread, scalar = run(program)
    assert spread.dtype == scalar.dtype == value.dtype
    assert spread.tobytes() == value.tobytes() * 2 and scalar.tobytes() == value.tobytes()


def test_zeros_of_both_signs_are_two_literals():
    program = stage(lambda x: [x * np.float32(0.0), x * np.float32(-0.0)], [ArrayType((), dtypes.float32)])
    assert [np.signbit(r).item() for r in run(program, np.float32(1))] == [False, True]


def test_jitted_functions_inside_one_another_share_no_values():
    """Literals of an inner program belong to it, wherever it is called first."""

    @fg.jit
    def inner(x: Any) -> Any:
        return fnp.sin(x) * 3.0 + 1.0

    @fg.jit
    def outer(x: Any) -> Any:
        return inner(inner(x) * 3.0) + inner(x + 1.0)

    def plain(x: Any) -> Any:
        g = lambda x: np.sin(x) * 3.0 + 1.0
        return g(g(x) * 3.0) + g(x + 1.0)

    x = np.linspace(0, 1, 5)
    np.testing.assert_allclose(outer(x), plain(x), rtol=1e-12)  # float64: a few roundings of sin


# ---------------------------------------------------------------- names and lines


def lines_by_operation(text: str) -> dict[str, set[int]]:
    """From a module's text with locations: the lines of this file that each named operation comes from."""
    files = dict(re.findall(rf'(#loc\d+) = loc\("{re.escape(__file__)}":(\d+)', text))
    found: dict[str, set[int]] = {}
    for name, place in re.findall(r'#loc\d+ = loc\("([^"]*)"\((#loc\d+)\)\)', text):
        if place in files:
            found.setdefault(name, set()).add(int(files[place]))
    return found


def test_operations_bear_the_users_lines_and_the_primitives_names():
    def layer(x: Any, w: Any) -> Any:
        y = x @ w
        return fnp.tanh(y)

    def loss(w: Any, x: Any) -> Any:
        for _ in range(3):
            x = layer(x, w)
        return fnp.sum(layer(x, w[:, 1:]))

    first = layer.__code__.co_firstlineno
    w, x = jnp.ones((4, 4)), jnp.ones((2, 4))
    found = lines_by_operation(fg.jit(fg.grad(loss)).lower(w, x).as_text(debug_info=True))
    assert found["jit(loss)/dot"] == {first + 1}, "backward products come from the line of the forward one"
    assert found["jit(loss)/tanh"] == {first + 2}
    assert found["jit(loss)/sub"] == {first + 2}, "1 - tanh², of the derivative"
    inside = lines_by_operation(fg.jit(lambda w, x: fg.jit(loss)(w, x) + 1).lower(w, x).as_text(debug_info=True))
    assert inside["jit(<lambda>)/tanh"] == {first + 2}, "also through a call of a jitted function"


def test_copies_of_other_sizes_bear_their_own_lines():
    def f(*xs: Any) -> list[Any]:
        a = fnp.sin(xs[0])
        b = fnp.sin(xs[1])
        return [a, b, fnp.sin(xs[2])]

    first = f.__code__.co_firstlineno
    text = fg.jit(f).lower(*[jnp.ones(n) for n in (1, 2, 3)]).as_text(debug_info=True)
    assert lines_by_operation(text)["jit(f)/sin"] == {first + 1, first + 2, first + 3}


def test_lowered_programs_have_source_names():
    compiled = fg.jit(lambda x: fnp.sum(fnp.tanh(x))).lower(jnp.ones(3)).compile().as_text()
    assert 'op_name="jit(<lambda>)/tanh"' in compiled
    assert Path(__file__).name in compiled


# ---------------------------------------------------------------- donation


def test_a_donated_buffer_is_deleted():
    step = fg.jit(lambda state, x: (state + x, fnp.sum(x)), donate_argnums=0)
    state, x = jnp.zeros((64, 64)), jnp.ones((64, 64))
    assert "tf.aliasing_output = 0" in step.lower(state, x).as_text()
    place = state.unsafe_buffer_pointer()
    new, _ = step(state, x)
    assert state.is_deleted() and not x.is_deleted()
    assert new.unsafe_buffer_pointer() == place, "the result is where the argument was"


def test_donation_by_name_and_of_a_tree():
    step = fg.jit(lambda x, *, state: {k: v * x for k, v in state.items()}, donate_argnames="state")
    state = {"a": jnp.ones(8), "b": jnp.ones((2, 2))}
    found = step(jnp.float32(2), state=state)
    assert all(v.is_deleted() for v in state.values())
    np.testing.assert_array_equal(found["b"], np.full((2, 2), 2.0))


def test_a_donated_argument_returned_as_it_is():
    identity = fg.jit(lambda x: x, donate_argnums=0)
    x = jnp.arange(4.0)
    np.testing.assert_array_equal(identity(x), np.arange(4.0))
    assert x.is_deleted()


# ---------------------------------------------------------------- size and depth


def test_long_programs_need_no_deep_stack():
    """Each of 20,000 operations depends on the one before; nothing recurses along the chain."""

    def chain(x: Any) -> Any:
        for _ in range(20_000):
            x = fnp.sin(x)
        return x

    module = fg.jit(fg.grad(chain)).lower(np.float32(0.5)).as_text()
    assert module.count("stablehlo.sine") == 19_999, "the last sine is the value, which a gradient does not need"
    assert module.count("stablehlo.cosine") == 20_000


def test_equations_like_one_another_run_their_rule_once():
    """JAX traces one of many sizes of an elementwise primitive, and one of many equations of one size of any other."""
    traced = {"elementwise": 0, "other": 0}

    def counted(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        def lower(*xs: Any) -> Any:
            traced[name] += 1
            return rule(*xs)

        return lower

    double = Primitive("double", infer=lambda x: x, lower=counted("elementwise", lambda x: x + x), elementwise=True)
    total = Primitive("total", infer=lambda x: ArrayType((), x.dtype), lower=counted("other", jnp.sum))
    types = [ArrayType((n, 2), dtypes.float32) for n in range(1, 30)]
    for times in (1, 2):
        module_of(stage(lambda *xs: [double(x) for x in xs], types))
        module_of(stage(lambda x: [total(x) for _ in range(30)], types[:1]))
        assert traced == {"elementwise": 1, "other": times}, "other: for each module, as it may depend on anything"


# ---------------------------------------------------------------- devices

SHARDED = """
    import os
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import funcgrad as fg, funcgrad.numpy as fnp
    import jax, numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    rows, columns = NamedSharding(mesh, P("data", None)), NamedSharding(mesh, P(None, "model"))
    random = np.random.default_rng(0)
    x, w = random.normal(size=(16, 8)).astype("f4"), random.normal(size=(8, 6)).astype("f4")

    def loss(w, x):
        return fnp.mean(fnp.tanh(x @ w) ** 2)

    def wanted(w, x):
        h = np.tanh(x @ w)
        return x.T @ (2 * h * (1 - h * h) / h.size)

    sharded = jax.device_put(x, rows), jax.device_put(w, columns)

    product = fg.jit(lambda x, w: fnp.tanh(x @ w))(*sharded)
    assert product.sharding.is_equivalent_to(NamedSharding(mesh, P("data", "model")), 2), product.sharding
    assert {s.data.shape for s in product.addressable_shards} == {(4, 3)}
    np.testing.assert_allclose(product, np.tanh(x @ w), rtol=2e-6, atol=1e-6)

    gradient = fg.jit(fg.grad(loss))(sharded[1], sharded[0])
    assert gradient.sharding.is_equivalent_to(columns, 2), gradient.sharding
    np.testing.assert_allclose(gradient, wanted(w, x), rtol=1e-5, atol=1e-7)

    step = fg.jit(lambda w, x: w - 0.1 * fg.grad(loss)(w, x), donate_argnums=0)
    new = step(sharded[1], sharded[0])
    assert sharded[1].is_deleted() and new.sharding.is_equivalent_to(columns, 2)
    np.testing.assert_allclose(new, w - 0.1 * wanted(w, x), rtol=1e-5, atol=1e-6)

    eager = fg.grad(loss)(w, sharded[0])
    np.testing.assert_allclose(eager, wanted(w, x), rtol=1e-5, atol=1e-7)
    print("eight devices agree")
"""


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """A new interpreter, as the tested behaviour happens once per process."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def test_sharded_arguments_give_sharded_results():
    done = run_python(SHARDED)
    assert done.stdout.strip() == "eight devices agree", done.stderr[-3000:]


def test_devices_can_be_chosen_after_the_import():
    """Importing funcgrad starts no backend, so JAX can still be configured before its first array."""
    done = run_python("""
        import os
        os.environ["JAX_PLATFORMS"] = "cpu"
        import funcgrad, jax
        jax.config.update("jax_num_cpu_devices", 3)
        assert jax.device_count() == 3
    """)
    assert done.returncode == 0, done.stderr[-3000:]


# ---------------------------------------------------------------- requirements on JAX


def test_an_incompatible_jax_version_is_reported():
    done = run_python("""
        import jax.interpreters.mlir as mlir
        del mlir.lower_fun
        import funcgrad
    """)
    assert "ImportError: funcgrad lowers programs through" in done.stderr
    assert f"JAX {jax.__version__}" in done.stderr and "lower_fun" in done.stderr
