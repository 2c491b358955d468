"""What has been compared with a real runtime: operator, types, version -> how many elements were equal, bit by bit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tflq.flatbuf import read
from tflq.ir import TensorSpec, view

#: What the elements were compared with.
SOURCE = {
    "package": "ai-edge-litert",
    "version": "2.3.0",
    "resolver": "BUILTIN_REF, or BUILTIN_WITHOUT_DEFAULT_DELEGATES where it lacks the operator or the version",
    "cpu": "x86-64",
}
#: Stands before the type of a constant that the file stores sparsely.
SPARSE = "sparse:"
#: (operator, types as "int8 int8 int32 -> int8" with `-` for an absent operand, version)
Form = tuple[str, str, int]


class Evidence:
    """Counts of elements that were equal, by form. What is on disk is added to, never lowered by a smaller run."""

    def __init__(self, counts: Counter[Form] | None = None) -> None:
        self.counts: Counter[Form] = Counter() if counts is None else counts

    def add(self, op: str, types: str, version: int, elements: int) -> None:
        """Note that so many elements of an output of that form were equal."""
        if elements:
            self.counts[op, types, version] += elements

    def merge(self, other: Evidence) -> None:
        """The larger count of both, form by form: the same run done twice proves nothing more."""
        self.counts |= other.counts

    @classmethod
    def load(cls, path: Path) -> Evidence:
        """What a file holds; nothing where there is none."""
        if not path.is_file():
            return cls()
        document = json.loads(path.read_text(encoding="utf-8"))
        counts: Counter[Form] = Counter()
        for op, forms in document["operators"].items():
            for types, versions in forms.items():
                counts.update({(op, types, int(version)): n for version, n in versions.items()})
        return cls(counts)

    def save(self, path: Path) -> None:
        """Write the file: sorted, one line a form."""
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
    """Note outputs of a model that were equal, `sizes` elements each: of the operators that make them, of no others."""
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
