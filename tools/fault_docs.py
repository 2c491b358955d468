"""Write docs/faults.md: every lint rule, known fault, device's and user's mistake, and verdict of `why`, with anchors.

python tools/fault_docs.py           write it
python tools/fault_docs.py --check   only check whether it is up to date
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from profile_docs import kept, table

from tflq.comparison.inputs.prepare import Scaling
from tflq.diagnosis.faults import DefectKind
from tflq.diagnosis.linting import portable
from tflq.diagnosis.linting.lint import RULES
from tflq.diagnosis.linting.rules import rules_of
from tflq.diagnosis.linting.targets import TARGETS, target_rules
from tflq.diagnosis.mistakes import mistakes, reorderings
from tflq.diagnosis.usage import inputs as hosts
from tflq.diagnosis.usage import search
from tflq.diagnosis.usage.inputs import mistaken
from tflq.diagnosis.why import Party
from tflq.engine.api.files import load
from tflq.engine.api.many import Part
from tflq.engine.profiles import by_name
from tflq.engine.profiles.history import known_faults
from tflq.model.ir import view

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "faults.md"
SINGLE = ROOT / "golden" / "singleop"
HEAD = """# Faults

Every rule, fault and mistake that tflq knows. Each row has an anchor that does not change, so that an issue tracker can
link it, such as [#rule-bias-scale](#rule-bias-scale). `tools/fault_docs.py` writes this page from the code.
"""
LINT = """## Lint rules

`tflq lint` checks them. [Lint a model](how-to/lint-a-model.md) shows how.
"""
RUNTIMES = """## Faults of runtimes

Cases in which a runtime does not compute the intended result. [runtimes.md](runtimes.md#known-faults) lists sources and
the profiles that reproduce them.
"""
WHY = """## Verdicts of `why`

`tflq why MODEL EVIDENCE` names one of them, and what to do.
"""
#: The meaning of each verdict.
MEANINGS = {
    Party.USER: "inputs or dumps were prepared otherwise than the model expects: one of the users' mistakes below",
    Party.MODEL: "the operator that differs breaks a rule of the specification, so devices need not agree on it",
    Party.DEVICE: "an operator computes what no known runtime computes: one of the devices' mistakes below",
    Party.RUNTIME: "the device has the bits of another known runtime or release",
    Party.KNOWN: "the bits are those of known runtimes, and are a fault of theirs: sums that exceed their accumulators",
    Party.NONE: "nothing differs",
    Party.OPEN: "the evidence is too small, or several causes or none reproduce every bit",
}
USERS = """## Mistakes of users

`tflq why` tries them on inputs and dumps. N is a number.
"""
DEFECTS = """## Faults that are no arithmetic

`tflq explain` and `why` recognize them by the values of the dump, with their place. They are tried before mistakes of
arithmetic, except padding, blocks of unknown contents and places: these are stated if no arithmetic reproduces a dump.
"""
#: The meaning of each kind of fault that is no arithmetic.
OF_DEFECTS = {
    DefectKind.NOTHING: "a constant, one result for all samples, the result of the sample before (stale), results that "
    "change between equal runs (uninitialized), an operator that was skipped",
    DefectKind.OVERFLOW: "sums exceed accumulators of 32 bits, which wrap or saturate; `why` names runtimes that do so",
    DefectKind.OVERWRITTEN: "a block was overwritten after its readers had run: their results follow from right values",
    DefectKind.BLOCK: "a block holds a constant, the sample before, another tensor, or unknown values",
    DefectKind.ADDRESSING: "right elements in other places: shifted, reversed, with a wrong stride, in blocks of "
    "channels, one image of a batch, bytes in the other order, stuck bits; also inputs that are read so",
    DefectKind.PRECISION: "floats: float16 or bfloat16 inside, infinity or NaN with their channels, subnormal numbers "
    "flushed to zero, a mistake that is reproduced up to the rounding of floats",
    DefectKind.PADDING: "only results whose windows reach beyond one side of the image differ: padding was not made",
    DefectKind.CONSTANT: "one constant of a channel is another in the device's memory: a flipped bit, erased bytes",
    DefectKind.PLACE: "only some images, rows, columns, channels or lanes of a vector differ",
}
DEVICES = """## Mistakes of devices

`tflq explain`, `why` and `conform` compute the results of a device with each of these mistakes. N is a number.
A row lists the forms of a mistake, and operators of the test models on which it is tried.
"""
#: Forms that a row lists.
LISTED = 12
#: Two settings of an image's numbers, so that a mistake in them can be drawn.
SCALING = Scaling.of([127.5], [127.5])


def slug(text: str) -> str:
    """Return the anchor of a text: lower-case words with dashes."""
    return re.sub(r"[^a-z0-9_.]+", "-", text.lower()).strip("-")


def anchor(kind: str, text: str) -> str:
    """Return the element of an anchor."""
    return f'<a id="{kind}-{slug(text)}"></a>'


def rules() -> Iterator[str]:
    """Yield the rows of lint rules."""
    every = (*RULES, *(rule for target in TARGETS for rule in target_rules(target)), *rules_of(portable))
    known = {rule.id: rule for rule in every}
    rows = ((f"{anchor('rule', r.id)}`{r.id}`", r.level.value, r.summary) for r in known.values())
    return table(("rule", "level", "demands"), rows)


def faults() -> Iterator[str]:
    """Yield the rows of faults of runtimes."""
    found = (known.fault for known in known_faults())
    rows = ((anchor("fault", f"{f.op} {f.types[0]} {f.versions}") + f.op, f.versions, f.symptom) for f in found)
    return table(("operator", "versions", "symptom"), rows)


def verdicts() -> Iterator[str]:
    """Yield the rows of verdicts of `why`."""
    return table(("fault", "means"), ((anchor("why", f.name) + f.name.lower(), MEANINGS[f]) for f in Party))


def defects() -> Iterator[str]:
    """Yield the rows of faults that are no arithmetic."""
    return table(("fault", "means"), ((anchor("defect", k.value) + k.value, OF_DEFECTS[k]) for k in DefectKind))


def general(name: str) -> str:
    """Return a name with N for its numbers; names of types keep theirs."""
    return re.sub(r"(?<![a-zA-Z_\d])-?\d+(\.\d+)?(e-?\d+)?", "N", name)


def of_users() -> Iterator[str]:
    """Yield the rows of users' mistakes."""
    model = load(ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite")
    graph = view(model)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 1, 8, 8, 3)).astype(np.float32)
    spec = graph.tensors[graph.inputs[0]]
    fed = (name for name, _ in mistaken(spec, list(pixels), SCALING))
    names = [f"input: {general(name)}" for name in fed if ", and " not in name]  # without combinations
    names += [f"dump: {name}" for name, _ in search._OF_TENSORS]
    names += [f"dump: off by one sample: results of the {word} were saved" for word in ("next", "one before")]
    names += [f"dump: {name}" for name in hosts.FURTHER]
    names += ["dump: the outputs are those of the float model", "dump: the outputs are those of another signature"]
    names += [f"dump: {word} in another order" for word in ("inputs", "outputs", "classes", "samples")]
    names.append("dump: reused arena memory: the dump holds tensor N in place of tensor N")
    rows = ((anchor("user", name) + name.partition(": ")[0], name.partition(": ")[2]) for name in dict.fromkeys(names))
    return table(("in", "mistake"), rows)


def of_devices() -> Iterator[str]:
    """Yield the rows of devices' mistakes, by the words before their details."""
    forms: dict[str, dict[str, None]] = {}
    operators: dict[str, set[str]] = {}
    for op, name in _tried():
        whole = general(name)
        head = re.split(r"[,:(]", whole, maxsplit=1)[0].strip()
        detail = whole[len(head) :].strip(" ,:")
        forms.setdefault(head, {})[detail] = None
        operators.setdefault(head, set()).add(op)
    rows = (
        (anchor("mistake", head) + head, _listed([d for d in forms[head] if d]), ", ".join(sorted(operators[head])))
        for head in sorted(forms, key=str.lower)
    )
    return table(("mistake", "forms", "operators"), rows)


def _listed(details: Sequence[str]) -> str:
    more = len(details) - LISTED
    return "; ".join(details[:LISTED]) + (f"; and {more} more" if more > 0 else "")


def _tried() -> Iterator[tuple[str, str]]:
    """Yield an operator and a mistake that is tried on it, for every model of one operator with a golden."""
    profile = by_name("litert-ref")
    for entry in json.loads((SINGLE / "index.json").read_text(encoding="utf-8")):
        model = load(SINGLE / entry["model"])
        graph = view(model)
        if len(graph.ops) != 1:
            continue
        with np.load(SINGLE / entry["golden"]) as golden:
            inputs = {t: golden[f"s0_in{i}"] for i, t in enumerate(graph.inputs)}
            outputs = {t: golden[f"s0_out{i}"] for i, t in enumerate(graph.outputs)}
        part = Part((0,), model, tuple(range(len(graph.tensors))), inputs, outputs)
        changed = (change.name for change in reorderings(part, profile))
        for name in (*(name for name, _ in mistakes(part, profile)), *changed):
            yield graph.ops[0].name, name


def page() -> str:
    """Return the page."""
    parts = (
        (LINT, rules()),
        (WHY, verdicts()),
        (USERS, of_users()),
        (DEFECTS, defects()),
        (DEVICES, of_devices()),
        (RUNTIMES, faults()),
    )
    return "\n".join([HEAD, *(line for head, rows in parts for line in (head, *rows, ""))])


def main() -> int:
    """Write the page; with --check return 1 if it is out of date."""
    return kept(PAGE, page(), only_check="--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
