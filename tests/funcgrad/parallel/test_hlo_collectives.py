"""The collectives of a compiled program, from the text of its HLO."""

from __future__ import annotations

import pytest

from funcgrad.parallel import Collective, collectives

TEXT = """HloModule jit_f, is_scheduled=true, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  ROOT %r = f32[] add(%a, %b)
}

%body (p: (s32[], f32[8,2])) -> (s32[], f32[8,2]) {
  %x = f32[8,2]{1,0} get-tuple-element(%p), index=1
  %sum = f32[8,2]{1,0} all-reduce(%x), channel_id=1, replica_groups=[2,2]<=[4], to_apply=%add
  ROOT %t = (s32[], /*index=1*/f32[8,2]{1,0}) tuple(%i, %sum)
}

%condition (p: (s32[], f32[8,2])) -> pred[] {
  ROOT %less = pred[] compare(%i, %n), direction=LT
}

ENTRY %main (x: f32[8,2]) -> bf16[16] {
  %loop = (s32[], /*index=1*/f32[8,2]{1,0}) while(%t), condition=%condition, body=%body, KNOWN
  %gathered = (bf16[4]{0}, bf16[16]{0}) all-gather-start(%y), replica_groups={{0,1,2,3}}, dimensions={0}
  %done = bf16[16]{0} all-gather-done(%gathered)
  %divided = f32[3]{0} reduce-scatter(%z), replica_groups={{0,1,2,3}}, to_apply=%add
  ROOT %sent = bf16[16]{0} collective-permute(%done), source_target_pairs={{0,1},{1,0}}
}
"""
KNOWN = 'backend_config={"known_trip_count":{"n":"5"}}'


def test_exchanges_of_a_text() -> None:
    found = collectives(TEXT.replace("KNOWN", KNOWN))
    assert {c.kind: c for c in found} == {
        "all-reduce": Collective("all-reduce", 2, 64, 5), "reduce-scatter": Collective("reduce-scatter", 4, 48),
        "collective-permute": Collective("collective-permute", 4, 32), "all-gather": Collective("all-gather", 4, 32),
    }  # fmt: skip
    assert [c.sent for c in found] == sorted([320, 36, 32, 24], reverse=True)


def test_loops_of_unknown_length_are_not_bounded() -> None:
    (loop,) = (c for c in collectives(TEXT.replace("KNOWN", "x=1")) if c.kind == "all-reduce")
    assert loop.count == 1 and not loop.bounded


def test_collectives_of_objects_that_are_not_programs() -> None:
    with pytest.raises(TypeError, match="takes a compiled program or its HLO, got int"):
        collectives(3)
    with pytest.raises(ValueError, match="no text of an HLO module"):
        collectives("x")
