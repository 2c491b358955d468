"""Comparisons with a real runtime: operator, types, version -> number of elements that were equal, bit by bit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tflq.model.flatbuf import read
from tflq.model.ir import TensorSpec, view

#: The runtime of the comparisons.
SOURCE = {
    "package": "ai-edge-litert",
    "version": "2.3.0",
    "resolver": "BUILTIN_REF, or BUILTIN_WITHOUT_DEFAULT_DELEGATES if it lacks the operator or the version",
    "cpu": "x86-64",
}
#: Prefix of the type of a constant that the file stores sparsely.
SPARSE = "sparse:"
#: (operator, types as "int8 int8 int32 -> int8" with `-` for an absent operand, version)
Form = tuple[str, str, int]


class Evidence:
    """Counts of elements that were equal, by form. The counts on disk can grow, but a smaller run never lowers them."""

    def __init__(self, counts: Counter[Form] | None = None) -> None:
        self.counts: Counter[Form] = Counter() if counts is None else counts

    def add(self, op: str, types: str, version: int, elements: int) -> None:
        """Record that `elements` elements of an output of that form were equal."""
        if elements:
            self.counts[op, types, version] += elements

    def merge(self, other: Evidence) -> None:
        """Keep the larger count of both, form by form: repeating the same run proves nothing more."""
        self.counts |= other.counts

    @classmethod
    def load(cls, path: Path) -> Evidence:
        """Return the evidence in a file; empty if there is none."""
        if not path.is_file():
            return cls()
        document = json.loads(path.read_text(encoding="utf-8"))
        counts: Counter[Form] = Counter()
        for op, forms in document["operators"].items():
            for types, versions in forms.items():
                counts.update({(op, types, int(version)): n for version, n in versions.items()})
        return cls(counts)

    def save(self, path: Path) -> None:
        """Write the file: sorted, one line per form."""
        operators: dict[str, dict[str, Any]] = {}
        for (op, types, version), elements in sorted(self.counts.items()):
            operators.setdefault(op, {}).setdefault(types, {})[str(version)] = elements
        blocks = []
        for op, forms in operators.items():
            lines = [f"   {json.dumps(types)}: {json.dumps(versions)}" for types, versions in forms.items()]
            blocks.append(f"  {json.dumps(op)}: {{\n" + ",\n".join(lines) + "\n  }")
        body = ",\n".join(blocks)
        source = json.dumps(SOURCE)
        path.write_text(f'{{\n "source": {source},\n "operators": {{\n{body}\n }}\n}}\n', encoding="utf-8")


def add_model(evidence: Evidence, content: bytes, sizes: Sequence[int]) -> None:
    """Record outputs of a model that were equal, `sizes` elements each: only those of the operators that make them."""
    model = read(content)
    graph = view(model)
    elements = dict(zip(graph.outputs, sizes, strict=True))
    for operator in graph.ops:
        inputs = ("-" if i < 0 else _type(graph.tensors[i]) for i in operator.inputs)
        outputs = (graph.tensors[i].type.label for i in operator.outputs)
        types = f"{' '.join(inputs)} -> {' '.join(outputs)}".strip()
        made = sum(elements.get(i, 0) for i in operator.outputs)
        evidence.add(operator.name, types, operator.version, made)


def _type(tensor: TensorSpec) -> str:
    return f"{SPARSE if tensor.sparsity is not None else ''}{tensor.type.label}"
