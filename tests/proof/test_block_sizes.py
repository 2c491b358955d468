"""Kernels take elements in blocks of sizes that proofs know."""

from __future__ import annotations

import re
from pathlib import Path

import tflq
from tflq.proof.codes import BLOCKS

KERNELS = Path(tflq.__file__).parent / "engine" / "kernels"
#: What makes a kernel compute elements by their place.
BY_PLACE = re.compile(r"in_whole_blocks|BlockTail|channel_blocks|TwoTables|FlatBlocks")
#: Assignments of sizes: `BLOCK = 8`, `BLOCK, CODE_BLOCK = 8, 16`.
SIZES = re.compile(r"^(?:\w*BLOCK\w*(?:, )?)+ = ([\d, ]+)$", re.MULTILINE)
#: Sizes in a table of forms: `(TensorType.INT8, False): (16, saturated)`.
FORMS = re.compile(r"^    \(TensorType\.\w+, \w+\): \((\d+),", re.MULTILINE)


def test_every_block_has_a_size_that_places_are_told_apart_by() -> None:
    sizes = set()
    for path in KERNELS.rglob("*.py"):
        text = path.read_text()
        if BY_PLACE.search(text):
            found = [*SIZES.findall(text), *FORMS.findall(text)]
            sizes |= {int(number) for group in found for number in group.split(", ")}
    assert {8, 16} <= sizes <= set(BLOCKS)
