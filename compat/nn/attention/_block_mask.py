"""Block masks of attention: the pairs of blocks of queries and keys that attend to each other.

``create_block_mask`` makes a ``BlockMask`` from a predicate of one query and one key.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._operators.indexing.getitem import batched_indices

#: A function of batch, head, query and key indices, 0-d tensors, to whether the query attends to the key.
MaskMod = Callable[[Any, Any, Any, Any], Any]

_SLICED = (
    "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], the mask_mod attribute is "
    "reset. You must set it from the original BlockMask's mask_mod.\n\n"
    "Incorrect usage:\n"
    "  base_mask = create_block_mask(my_mask_fn, ...)\n"
    "  sliced_mask = base_mask[:, :, block_idx]\n"
    "  sliced_mask.mask_mod = apply_offset(sliced_mask.mask_mod, offset)  # WRONG!\n\n"
    "Correct usage:\n"
    "  base_mask = create_block_mask(my_mask_fn, ...)\n"
    "  sliced_mask = base_mask[:, :, block_idx]\n"
    "  sliced_mask.mask_mod = apply_offset(base_mask.mask_mod, offset)  # Use base_mask!"
)
_MORE = (
    "To print out more, set BlockMask.to_string(limit=N)\n"
    "You can also index (BlockMask[batch, head]) to choose a specific batch or head"
)


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """True: every query attends to every key."""
    return batch.new_ones(size=(), dtype=dtypes.bool_)


def _sliced_mask_mod_error(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    raise RuntimeError(_SLICED)


def over_indices(f: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Batches ``f(*tensors, batch, head, query, key)`` over all indices; the ``count`` tensors get four dimensions."""
    for d in range(3, -1, -1):
        f = names_of("torch")["vmap"](f, in_dims=(0,) * count + tuple(0 if i == d else None for i in range(4)))
    return batched_indices()(f)


def _combined(
    name: str, combine: Callable[[Any, Any], Any], start: Callable[[Any], Any], mods: tuple[MaskMod, ...]
) -> Any:
    if not all(callable(mod) for mod in mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mods}")

    def mask(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        result = start(b)
        for mod in mods:
            result = combine(result, mod(b, h, q_idx, kv_idx))
        return result

    mask.__name__ = mask.__qualname__ = name
    return mask


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask function that is true where all the given ones are.

    Raises:
        RuntimeError: if one is not callable.
    """
    return _combined("and_mask", lambda x, y: x & y, lambda b: b.new_ones((), dtype=dtypes.bool_), mask_mods)


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask function that is true where any of the given ones is.

    Raises:
        RuntimeError: if one is not callable.
    """
    return _combined("or_mask", lambda x, y: x | y, lambda b: b.new_zeros((), dtype=dtypes.bool_), mask_mods)


def create_mask(
    mod_fn: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """A dense mask.

    Args:
        mod_fn: a mask function of the indices of batch, head, query and key, or a function that modifies a score, of
            the score and these indices.
        B, H: the numbers of batches and heads; None to broadcast.
        Q_LEN, KV_LEN: the numbers of queries and keys.

    Returns:
        ``(B, H, Q_LEN, KV_LEN)``: booleans, or the modified scores of zero.

    Raises:
        AssertionError: for a function of other than four or five arguments.

    Example:
        >>> create_mask(lambda b, h, q, kv: q >= kv, 1, 1, 2, 3)
        tensor([[[[ True, False, False],
                  [ True,  True, False]]]])
    """
    wanted = [p for p in inspect.signature(mod_fn).parameters.values() if p.default is inspect.Parameter.empty]
    assert len(wanted) in (4, 5), f"Expected 4 or 5 positional args, got {len(wanted)}"
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    torch = names_of("torch")
    indices = [torch["arange"](0, n, device=device) for n in sizes]
    if len(wanted) == 4:
        return over_indices(mod_fn, 0)(*indices)
    return over_indices(mod_fn, 1)(torch["zeros"](*sizes, device=device), *indices)


def _blocks(dense: Tensor, block: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Whether each block of a mask has a true element, and whether all its elements are true."""
    mask = np.asarray(dense.numpy())
    rows, columns = mask.shape[-2:]
    mask = np.pad(mask, ((0, 0), (0, 0), (0, -rows % block[0]), (0, -columns % block[1])))
    b, h, rows, columns = mask.shape
    found = mask.reshape(b, h, rows // block[0], block[0], columns // block[1], block[1]).sum((3, 5))
    return found > 0, found == block[0] * block[1]


def _sparse_rows(dense: np.ndarray) -> tuple[Tensor, Tensor]:
    """The number of present blocks in each row, and the indices of all blocks, those of present ones first."""
    order = np.argsort(~dense, axis=-1, kind="stable")
    tensor = names_of("torch")["tensor"]
    return tuple(tensor(x, dtype=dtypes.int32) for x in (dense.sum(-1), order))


def _dense(counts: Tensor | None, indices: Tensor | None) -> Any:
    """The inverse of ``_sparse_rows``: whether each block is present."""
    if counts is None or indices is None:
        return None
    number, order = counts.numpy(), indices.numpy()
    dense = np.zeros(order.shape, bool)
    *row, column = np.nonzero(np.arange(order.shape[-1]) < number[..., None])
    dense[(*row, order[(*row, column)])] = True
    return dense


def _check_tables(kv_indices: Tensor, full_kv_num_blocks: Tensor | None, full_kv_indices: Tensor | None) -> None:
    if kv_indices.dim() < 2:
        raise RuntimeError("BlockMask must have at least 2 dimensions")
    assert (full_kv_num_blocks is None) == (full_kv_indices is None), (
        "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
    )


class BlockMask:
    """The pairs of blocks of queries and keys that attend to each other, and the mask function within them.

    Attributes:
        kv_num_blocks: ``(B, H, rows)``: the number of blocks of keys that each block of queries partly attends to.
        kv_indices: ``(B, H, rows, columns)``: the indices of all blocks of keys, those of these blocks first.
        full_kv_num_blocks, full_kv_indices: the same for full blocks; None if all count as partial.
        q_num_blocks, q_indices, full_q_num_blocks, full_q_indices: the same by blocks of keys.
        seq_lengths: the numbers of queries and keys.
        BLOCK_SIZE: the sizes of a block.
        mask_mod: the mask function of a query and a key.
    """

    __module__ = "compat.nn.attention.flex_attention"

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (128, 128),
        mask_mod: MaskMod = noop_mask,
    ):
        _check_tables(kv_indices, full_kv_num_blocks, full_kv_indices)
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = 128,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """A mask from the blocks of keys for each block of queries.

        Raises:
            RuntimeError: for indices of fewer than two dimensions.
            AssertionError: if only one of the counts and the indices of full blocks is given.
        """
        _check_tables(kv_indices, full_kv_num_blocks, full_kv_indices)
        block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if seq_lengths is None:
            rows, columns = kv_indices.shape[-2:]
            seq_lengths = (rows * block[0], columns * block[1])
        by_key: list[Tensor | None] = []
        for counts, indices in ((kv_num_blocks, kv_indices), (full_kv_num_blocks, full_kv_indices)):
            dense = _dense(counts, indices) if compute_q_blocks else None
            by_key += (None, None) if dense is None else _sparse_rows(dense.swapaxes(-1, -2))
        by_query = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices)
        given: Any = (seq_lengths, *by_query, *by_key, block, mask_mod or noop_mask)
        return cls(*given)

    # ---------------------------------------------------------------- properties

    @property
    def _tables(self) -> tuple[Tensor | None, ...]:
        return (
            self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices, self.q_num_blocks,
            self.q_indices, self.full_q_num_blocks, self.full_q_indices,
        )  # fmt: skip

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """The sizes, the tables, the block sizes and the mask function."""
        sizes, block = (self.seq_lengths, self.BLOCK_SIZE) if flatten else ((self.seq_lengths,), (self.BLOCK_SIZE,))
        return (*sizes, *self._tables, *block, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dense mask."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of elements of the dense mask."""
        return int(np.prod(self.shape))

    def sparsity(self) -> float:
        """The percentage of the mask in empty blocks."""
        counts = [t for t in (self.kv_num_blocks, self.full_kv_num_blocks) if t is not None]
        blocks = sum(int(t.sum()) for t in counts)
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """``(B, H, rows, columns)``: 1 for the pairs of blocks that attend to each other."""
        dense = _dense(self.kv_num_blocks, self.kv_indices)
        full = _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return names_of("torch")["tensor"](dense if full is None else dense | full, dtype=dtypes.int32)

    def to(self, device: Any) -> BlockMask:
        """The mask with its tables on a device."""
        tables = [t if t is None else t.to(device) for t in self._tables]
        given: Any = (self.seq_lengths, *tables, self.BLOCK_SIZE, self.mask_mod)
        return BlockMask(*given)

    # ---------------------------------------------------------------- parts

    def __getitem__(self, index: Any) -> BlockMask:
        index = index if isinstance(index, tuple) else (index,)
        kept = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in index[:3])
        tables = [t if t is None else t[kept] for t in self._tables[:4]]
        both = self.q_indices is not None
        given: Any = (*tables, self.BLOCK_SIZE, _sliced_mask_mod_error, self.seq_lengths, both)
        return BlockMask.from_kv_blocks(*given)

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left part, for fewer queries and keys."""
        rows, columns = (-(-n // size) for n, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE))
        dense = [_dense(*self._tables[i : i + 2]) for i in (0, 2)]
        cut = [(None, None) if d is None else _sparse_rows(d[:, :, :rows, :columns]) for d in dense]
        given: Any = (*cut[0], *cut[1], self.BLOCK_SIZE, self.mask_mod, (new_q_len, new_kv_len))
        return BlockMask.from_kv_blocks(*given)

    # ---------------------------------------------------------------- printing

    def to_string(self, grid_size: tuple[int, int] | int = (20, 20), limit: int = 4) -> str:
        """The mask as text, by batch and head: full, partial and empty blocks.

        Args:
            grid_size: the maximum numbers of rows and columns of the picture; -1 for all.
            limit: the maximum number of pictures.
        """
        dense = self.to_dense().numpy()
        if grid_size == -1:
            grid_size = dense.shape[-2:]
        rows, columns = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        parts = []
        for n, index in enumerate(np.ndindex(*dense.shape[:-2])):
            if n == limit:
                parts.append(f"...\n{_MORE}")
                break
            parts.append(f"{tuple(map(int, index))}\n{_picture(dense[index], rows, columns)}")
        return "\n".join(parts)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"


def _picture(blocks: np.ndarray, rows: int, columns: int) -> str:
    """The blocks as lines of text, with one character for several blocks of a large mask."""
    high, wide = (max(-(-have // most), 1) for have, most in zip(blocks.shape, (rows, columns)))
    lines = ""
    for r in range(0, blocks.shape[0], high):
        for c in range(0, blocks.shape[1], wide):
            part = blocks[r : r + high, c : c + wide].mean()
            lines += 2 * ("█" if part == 1 else "░" if part else " ")
        lines += "\n"
    return lines


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = 128,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """A block mask from a mask function.

    Args:
        mask_mod: a mask function of the indices of batch, head, query and key.
        B, H: the numbers of batches and heads; None to broadcast.
        Q_LEN, KV_LEN: the numbers of queries and keys.
        BLOCK_SIZE: the sizes of a block, one number or a pair.
        separate_full_blocks: whether full blocks are listed separately from partial ones.

    Raises:
        AssertionError: for a function of other than four arguments.

    Example:
        >>> create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 64, 64, BLOCK_SIZE=16)
        BlockMask(shape=(1, 1, 64, 64), sparsity=37.50%,
        (0, 0)
        ██
        ████
        ██████
        ████████
        )
    """
    block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    present, full_blocks = _blocks(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), block)
    if separate_full_blocks:
        tables: Any = (*_sparse_rows(present & ~full_blocks), *_sparse_rows(full_blocks))
    else:
        tables = (*_sparse_rows(present), None, None)
    given: Any = (*tables, block, mask_mod, (Q_LEN, KV_LEN))
    return BlockMask.from_kv_blocks(*given)
