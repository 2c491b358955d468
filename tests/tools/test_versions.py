"""Versions that the kernel table accepts, held against what LiteRT's resolvers have registered."""

from __future__ import annotations

import pytest

from opfuzz.one_operator import T, build
from opfuzz.remote import FULL, REFERENCE
from opfuzz.remote_worker import UNKNOWN
from support.each import each
from tflq.engine.profiles import by_name
from tflq.model.ir.model import enum

OPERATORS = sorted(set(enum("BuiltinOperator")) & set(by_name("litert-ref").kernels))


def registered(op: str, version: int) -> bool:
    """Whether any of the two resolvers finds the operator in that version: asked of the interpreter, nothing is run."""
    from ai_edge_litert import interpreter as runtime

    model = build(op, [T("float32", (1,))], [T("float32", (1,))], None, version)
    for name in (REFERENCE, FULL):
        resolver = getattr(runtime.OpResolverType, name)
        try:
            runtime.Interpreter(model_content=model, num_threads=1, experimental_op_resolver_type=resolver)
        except ValueError as error:
            if any(words in str(error) for words in UNKNOWN):
                continue
        return True
    return False


@each("op", OPERATORS)
def test_versions(op: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    rows = by_name("litert-ref").kernels[op]
    highest = max(row.versions[1] for row in rows)
    assert highest < 99, "a builtin operator needs a highest version"
    for version in range(1, highest + 3):
        accepted = any(low <= version <= high for low, high in (row.versions for row in rows))
        assert accepted == registered(op, version), f"version {version}"
