"""``torch.Tag``: properties of an operation besides its schema."""

from __future__ import annotations

import enum

from compat._core.tensor.registry import function

_NAMES = (
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view "
    "maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order "
    "nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy"
)
Tag = enum.IntEnum("Tag", _NAMES, start=0, module="torch")  # type: ignore[misc]
function("torch.Tag")(Tag)
