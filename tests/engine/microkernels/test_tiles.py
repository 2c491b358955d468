"""Micro-kernels against their definition, on random and extreme operands: those of this machine, and of others."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.tiles import ARM, ArmTile, HostTile, assembly, has_arm_tools
from tflq.engine.jit.processors import features, machine
from tflq.engine.microkernels import product
from tflq.engine.microkernels.kernel import FORMS, Tile, TileKernel
from tflq.engine.microkernels.product import definition
from tflq.engine.numerics.stage_roundings import (
    BlockTail,
    DoubleRounding,
    ExactHalfUp,
    FloatRounding,
    FloatRoundingEven,
    HalfUpTwice,
    ShortHalfUp,
    SingleRounding,
    WideRounding,
)
from tflq.engine.numerics.stages import VectorScaling

#: Forms that this machine can run, and those of others with plain vector code in place of their instruction.
NATIVE = [form for form in FORMS if form.machine == machine() and form.features <= features()]
PLAIN = {"int16": "plain-int16", "int8": "plain-int8", "uint8": "plain-uint8"}
SIMULATED = [replace(form, dot=PLAIN[form.left]) for form in FORMS if form not in NATIVE]

STAGES = {
    "double": lambda reals: DoubleRounding.of(np.append(reals[1:], 0.5)),  # which has no second rounding
    "double, all with a shift": lambda reals: DoubleRounding.of(np.minimum(reals, 0.49)),
    "half up twice": HalfUpTwice.of,
    "single": SingleRounding.of,
    "wide": WideRounding.of,
    "float64": FloatRounding.of,
    "float32": FloatRoundingEven.of,
    "exact": ExactHalfUp.of,
    "short": ShortHalfUp.of,
    "blocks": BlockTail.of(HalfUpTwice.of, DoubleRounding.of, 8),
}
CODES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}


def scaling_of(stage, columns, seed):
    """Multipliers of all magnitudes, powers of two among them: there the roundings meet ties."""
    rng = np.random.default_rng(seed)
    reals = np.exp2(rng.uniform(-20, -1, columns))
    ties = rng.random(columns) < 0.4
    reals[ties] = np.exp2(rng.integers(-12, 0, ties.sum()).astype(float))
    return STAGES[stage](reals).scaling(2**30 - 1)


@cache
def kernel_of(form, rows, vectors, stage, code):
    tile = Tile(form, rows, vectors)
    steps = scaling_of(stage, tile.columns, 0).steps if stage else ()
    return TileKernel(tile, steps, code)


@st.composite
def operands(draw, kernel, stage):
    """What a tile reads, within what its steps take; sums without steps may wrap."""
    form, tile = kernel.tile.form, kernel.tile
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    steps = draw(st.integers(1, 40))
    left, right = np.iinfo(form.left), np.iinfo(form.right)
    if stage and form.left == "int16":
        left, right = draw(st.sampled_from([(Limits(-255, 255), Limits(-255, 255)), (left, np.iinfo(np.int8))]))
    shapes = (tile.rows, steps * form.group), (steps, tile.columns * form.group)
    drawn = []
    for info, shape, kind in zip((left, right), shapes, (form.left, form.right), strict=True):
        if draw(st.booleans()):
            drawn.append(rng.integers(info.min, info.max, shape, endpoint=True).astype(kind))
        else:
            drawn.append(rng.choice([info.min, info.max], shape).astype(kind))
    bound = 2**20 if stage else 2**31 - 1
    bias = rng.integers(-bound, bound, tile.columns)
    terms = rng.integers(-bound, bound, tile.rows).astype(np.int32)
    scaling = scaling_of(stage, tile.columns, draw(st.integers(0, 9))) if stage else VectorScaling((), ())
    constants = product.packing_constants(tile, bias, scaling.constants, tile.columns)
    low, high = CODES.get(kernel.code, (-(2**31), 2**31 - 1))
    zero_point = draw(st.sampled_from([low, 0, high, 3])) if stage else 0
    if stage and draw(st.booleans()):
        low, high = sorted(rng.integers(low, high, 2, endpoint=True).tolist())
    return *drawn, constants, terms, (zero_point, low, high)


class Limits:
    def __init__(self, low, high):
        self.min, self.max = low, high


def defined(kernel, rows, weights, constants, terms, limits):
    out = np.zeros((kernel.tile.rows, kernel.tile.columns), kernel.code)
    definition(kernel)(rows, 0, weights[None], 0, constants, terms, *limits, out, 0, 0)
    return out


def tiles_of(form):
    return [*form.tiles, (1, form.tiles[0][1])]


HOST_CASES = [
    *((form, *tile, None, "int32") for form in (*NATIVE, *SIMULATED) for tile in tiles_of(form)),
    *((form, 1, form.tiles[0][1], "double", "int8") for form in (*NATIVE, *SIMULATED)),
    *((form, *form.tiles[0], stage, code) for form in NATIVE[:1] for stage in STAGES for code in CODES),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", HOST_CASES, ids=lambda c: f"{c[0].name} {c[0].dot} {c[1]}x{c[2]} {c[3]} {c[4]}")
def test_tile_of_this_machine(case):
    kernel, stage = kernel_of(*case), case[3]
    tile = HostTile(kernel)

    @settings(max_examples=25)
    @given(operands(kernel, stage))
    def check(drawn):
        np.testing.assert_array_equal(tile(*drawn), defined(kernel, *drawn))

    check()


@pytest.mark.slow
@pytest.mark.skipif(not has_arm_tools(), reason="needs qemu-aarch64 and aarch64-linux-gnu-gcc")
@pytest.mark.parametrize("stage", [None, *STAGES])
@pytest.mark.parametrize("form", [f for f in FORMS if f.machine == "aarch64"], ids=lambda f: f.name)
def test_tile_under_emulation(form, stage, tmp_path):
    kernel = kernel_of(form, *form.tiles[0], stage, "int8" if stage else "int32")
    tile = ArmTile(kernel, tmp_path, ",".join(f"+{name}" for name in sorted(form.features)))
    draw = operands(kernel, stage)
    for drawn in examples(draw, 12):
        np.testing.assert_array_equal(tile(*drawn), defined(kernel, *drawn))


def examples(strategy, count):
    """A few draws of a strategy, the same in every run."""
    found = []

    @settings(max_examples=count, derandomize=True, database=None)
    @given(strategy)
    def collect(drawn):
        found.append(drawn)

    collect()
    return found


#: The instruction that each form is about, as its machine's assembler writes it; LLVM may take vpdpwssd apart.
INSTRUCTIONS = {
    "avx512-vnni": ("icelake-server", r"vpdpbusd\s.*%zmm"),
    "avx-vnni": ("alderlake", r"vpdpbusd\s.*%ymm"),
    "avx512-vnni-pairs": ("icelake-server", r"vp(?:dpwssd|maddwd)\s.*%zmm"),
    "avx-vnni-pairs": ("alderlake", r"vp(?:dpwssd|maddwd)\s.*%ymm"),
    "avx512-bw": ("skylake-avx512", r"vpmaddwd\s.*%zmm"),
    "avx2": ("haswell", r"vpmaddwd\s.*%ymm"),
    "sse2": ("x86-64", r"pmaddwd\s.*%xmm"),
    "neon-dotprod": ("cortex-a76", r"sdot\s+v\d+\.4s"),
    "neon": ("cortex-a53", r"smlal2?\s+v\d+\.4s"),
}


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.name)
def test_tile_is_its_instruction(form):
    """One instruction for each register of sums in the loop over k, and no call."""
    cpu, pattern = INSTRUCTIONS[form.name]
    triple = ARM if form.machine == "aarch64" else "x86_64-unknown-linux-gnu"
    rows, vectors = form.tiles[0]
    text = assembly(TileKernel(Tile(form, rows, vectors), (), "int32"), triple, cpu, "")
    assert len(re.findall(pattern, text)) >= rows * vectors
    assert not re.search(r"\bcallq?\b|\bbl\s", text)


DIGESTS = """
from test_tiles import FORMS, STAGES, kernel_of
from tflq.engine.microkernels.product import tile_into
print([tile_into.digest_of(kernel_of(form, *form.tiles[0], stage, "int8")) for form in FORMS for stage in STAGES])
"""


@pytest.mark.slow
def test_machine_code_is_found_again_by_other_processes() -> None:
    """What names it is the same whatever the addresses of functions and the order of sets are."""
    folders = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    runs = [
        subprocess.run(
            [sys.executable, "-c", DIGESTS],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": folders},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert len(set(runs)) == 1
    digests = ast.literal_eval(runs[0])
    assert len(set(digests)) > len(FORMS)
