"""The table of XNNPACK's rewrites: what changes bits is reproduced somewhere, or the table says why not."""

from __future__ import annotations

import re
from pathlib import Path

from support.each import each
from tflq.engine.kernels.notes import Effect, GraphRewrite, rewrites

ROOT = Path(__file__).resolve().parents[3]


@each("rewrite", rewrites(), ids=lambda rewrite: rewrite.function[:40])
def test_what_changes_bits_is_reproduced_or_named(rewrite: GraphRewrite) -> None:
    if rewrite.effect == Effect.NONE:
        assert rewrite.when is None
    elif rewrite.when is None:
        assert rewrite.where.startswith("not reproduced")
    else:
        path = re.match(r"[\w/]+\.py", rewrite.where)
        assert path is not None
        assert (ROOT / path.group()).exists()
        assert rewrite.function.split(".")[-1].split("::")[-1] in (ROOT / path.group()).read_text(encoding="utf-8")
