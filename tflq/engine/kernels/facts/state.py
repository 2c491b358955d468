"""Operators that keep state, draw numbers, call subgraphs, make shapes from values, or move codes of StableHLO."""

from __future__ import annotations

from tflq.engine.kernels.facts import counts
from tflq.engine.kernels.facts.fact import COPIES_CODES, MOVES, Fact, Needs

# fmt: off
FACTS = (
    Fact("ASSIGN_VARIABLE", room="variables", opt="2.7:1", ref="2.13:1", micro="uint8", rounds_once=True),
    Fact("BROADCAST_ARGS", both="2.7:1", micro="taken"),
    Fact("CALL_ONCE", room="control_flow", opt="2.5:1", ref="2.13:1", micro="uint8", rounds_once=True),
    Fact("DENSIFY", opt="2.3:1", ref="2.5:1", rounds_once=True, converts=True),
    Fact("HASHTABLE", room="hashtables", opt="2.5:1"),
    Fact("HASHTABLE_FIND", room="hashtables", opt="2.5:1"),
    Fact("HASHTABLE_IMPORT", room="hashtables", opt="2.5:1"),
    Fact("HASHTABLE_LOOKUP", room="hashtables", both="1.15:1", traced=False, kept_float="its kernel copies bytes"),
    Fact("HASHTABLE_SIZE", room="hashtables", opt="2.5:1"),
    Fact("IF", room="control_flow", both="1.15:1", micro="uint8", rounds_once=True),
    Fact("MULTINOMIAL", room="random_numbers", both="2.9:1"),
    Fact("RANDOM_STANDARD_NORMAL", room="random_numbers", both="2.7:1"),
    Fact("RANDOM_UNIFORM", room="random_numbers", both="2.9:1"),
    Fact("RANGE", opt="1.15:1 2.14:2", ref="1.15:1"),
    Fact("RANK", opt="1.15:1", ref="2.5:1", reads_shapes=True),
    Fact("READ_VARIABLE", room="variables", opt="2.7:1", ref="2.13:1", micro="uint8", rounds_once=True),
    Fact("SHAPE", both="1.15:1", micro="uint8", reads_shapes=True),
    Fact("STABLEHLO_CASE", room="control_flow", opt="1.4:1", rounds_once=True),
    Fact("STABLEHLO_COMPOSITE", opt="1.0:1", ref="1.4:1", rounds_once=True),
    Fact("STABLEHLO_RNG_BIT_GENERATOR", room="random_numbers", both="1.0:1"),
    Fact("TOPK_V2", opt="1.15:2 2.13:3", ref="1.15:1 2.5:2 2.13:3", rounds_once=True, traced=False, quantize=MOVES,
         needs=Needs(2, 3), passes=counts.sorted),  # topk_v2.cc TopContainer
    Fact("UNIQUE", both="1.15:1", rounds_once=True, traced=False,
         kept_float="values that differ could share a code, and the output's shape depends on which do",
         passes=counts.sorted),  # unique.cc EvalImpl
    Fact("VAR_HANDLE", room="variables", opt="2.7:1", ref="2.13:1", micro="uint8"),
    Fact("WHERE", both="1.15:1 2.9:2", rounds_once=True,
         kept_float="values near 0 could become 0, and the output's shape depends on which do"),
    Fact("WHILE", room="control_flow", both="1.15:1", micro="uint8", rounds_once=True),
    Fact("STABLEHLO_GATHER", both="1.0:1", kept_float=COPIES_CODES),
    Fact("STABLEHLO_PAD", room="pad", both="1.0:1", traced=False, kept_float=COPIES_CODES),
    Fact("STABLEHLO_SCATTER", room="scatter", both="1.0:1", kept_float=COPIES_CODES),
)
# fmt: on
