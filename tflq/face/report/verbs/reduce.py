"""The report of `tflq reduce`, and its archive for the vendor of a device.

The report of `tflq reduce`: what is left of the model, and where its outputs differ.

A reduced model as one archive for the vendor of a device: model, inputs, outputs, a test in C, a Markdown page.

Nothing in it needs tflq: arrays are `.npy` inside `.npz`, and the test needs a C compiler.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from io import BytesIO
from shlex import quote
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from tflq.comparison.goldens.golden import Golden, Observation
from tflq.comparison.inspection.difference import Difference, difference
from tflq.comparison.results import InputFacts
from tflq.diagnosis.reduction import Reduced, Sample
from tflq.engine.api.files import ModelFacts, save
from tflq.engine.runtimes.process import temporary_folder
from tflq.errors import LimitError, UnsupportedError
from tflq.face.report.blocks import Brief, Headline, Next, Report, Text
from tflq.face.report.documents.diagnosis import ReduceDocument
from tflq.face.report.documents.filling import filled
from tflq.face.report.verbs.export import export_c
from tflq.face.report.verbs.models import part_blocks, tensor_document, type_text
from tflq.face.report.wording import counted
from tflq.model.ir import view
from tflq.texts import printable, valid


def reduce_report(reduced: Reduced, path: str, next_command: str) -> Report:
    """Build the report of a reduced model in the file at `path`; `next_command` shows the difference again."""
    part = part_blocks(reduced.model, reduced.operators, path)
    return Report("reduce", [*part, *map(Text, remaining(reduced)), Next([next_command])])


def reduce_card(reduced: Reduced) -> Report:
    """Build the report of a reduced model that is in no file."""
    sizes = ", ".join(str(list(value.shape)) for value in reduced.sample)
    kept = ", ".join(map(str, reduced.operators))
    what = f"Reduced to {counted(len(reduced.operators), 'operator')} of the original ({kept}), with inputs {sizes}"
    where = next(remaining(reduced), "the check still shows the difference; what the device gives is not known")
    return Report(
        "reduce", [Headline(what), Brief(where, "Next: tflq.save(reduced.model, path); .sample, .expected, .got")]
    )


def remaining(reduced: Reduced) -> Iterator[str]:
    """Yield how each output of the reduced model differs, if the device's outputs are known."""
    for d in _differences(reduced):
        if d.first is not None:
            yield (
                f"{d.differing:,} of {d.elements:,} elements differ, the first at {list(d.first.index)}: "
                f"profile {d.first.expected}, dump {d.first.got}"
            )


def _differences(reduced: Reduced) -> list[Difference]:
    return [difference(e, g) for e, g in zip(reduced.expected, reduced.got or (), strict=False)]


def reduce_document(
    reduced: Reduced, facts: ModelFacts | None = None, files: Mapping[str, str] | None = None, next_command: str = ""
) -> ReduceDocument:
    """Return the document: `schemas/reduce.schema.json`. `files` are the written ones by what they hold."""
    graph = view(reduced.model)
    return filled(
        ReduceDocument,
        reduced,
        model=facts,
        files=files or {},
        inputs=[tensor_document(graph.tensors[t]) for t in graph.inputs],
        outputs=[tensor_document(graph.tensors[t]) for t in graph.outputs],
        differing=None if reduced.got is None else sum(d.differing for d in _differences(reduced)),
        next=next_command,
    )


#: The name of the test in C, and the date of all members: equal bundles give equal bytes.
_NAME, _DATE = "reduced", (1980, 1, 1, 0, 0, 0)
#: The longest list of values that the page shows.
_VALUES = 64


def bundle(reduced: Reduced, facts: ModelFacts, profile: str, check: str | None = None) -> bytes:
    """Return the archive. `facts` are those of the original model; `check` is the command that shows the difference."""
    data = save(reduced.model)
    files: dict[str, bytes] = {"model.tflite": data}
    digest = hashlib.sha256(data).hexdigest()
    files["device.npz"] = _golden(reduced, digest, reduced.got or ())
    files["expected.npz"] = _golden(reduced, digest, reduced.expected)
    files |= _test(reduced, digest, data)
    text = "\n".join(_page(reduced, facts, profile, check, files))
    target = BytesIO()
    with ZipFile(target, "w") as archive:
        for name, content in {"README.md": valid(text).encode(), **files}.items():
            info = ZipInfo(name, _DATE)
            info.compress_type, info.external_attr = ZIP_DEFLATED, 0o644 << 16
            archive.writestr(info, content)
    return target.getvalue()


def _recording(reduced: Reduced, digest: str, outputs: Sample) -> Golden:
    observation = Observation(reduced.sample, outputs)
    return Golden((observation,), False, InputFacts("reduced", None, 1), {}, digest)


def _golden(reduced: Reduced, digest: str, outputs: Sample) -> bytes:
    with temporary_folder() as folder:
        path = os.path.join(folder, "golden.npz")
        _recording(reduced, digest, outputs).save(path)
        with open(path, "rb") as file:
            return file.read()


def _test(reduced: Reduced, digest: str, data: bytes) -> dict[str, bytes]:
    """Return the two files of the test in C; none if the values are too many or have no C type."""
    try:
        made = export_c(_recording(reduced, digest, reduced.expected), _NAME, data)
    except (LimitError, UnsupportedError):
        return {}
    return {f"{_NAME}.h": valid(made.header).encode(), f"{_NAME}_test.c": valid(made.test).encode()}


def _page(
    reduced: Reduced, facts: ModelFacts, profile: str, check: str | None, files: Mapping[str, bytes]
) -> Iterator[str]:
    graph = view(reduced.model)
    ops = ", ".join(dict.fromkeys(op.name for op in graph.ops))
    yield from (f"# {_plain(ops)}: other bits than {_plain(profile)}", "")
    original = os.path.basename(facts.path or "") or "the model"
    yield f"The smallest part of `{_code(original)}` that shows a difference: {len(graph.ops)} operator(s),"
    yield from (f"{', '.join(map(str, reduced.operators))} of the original (SHA-256 `{facts.sha256}`).", "")
    yield from ("| tensor | name | type | shape |", "|---|---|---|---|")
    for kind, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        for spec in (graph.tensors[t] for t in tensors):
            yield f"| {kind} | `{_code(spec.name or '')}` | {type_text(spec)} | {list(spec.shape)} |"
    yield from ("", "## The difference", "")
    yield from _difference(reduced, profile, check)
    yield from ("", "## Files", "", "| file | what it is |", "|---|---|", "| `model.tflite` | the model |")
    device = "the inputs `s0_in0` ..." + (
        ", and what the device gave, `s0_out0` ..." if reduced.got is not None else ""
    )
    yield f"| `device.npz` | {device} |"
    yield f"| `expected.npz` | the inputs, and what {_plain(profile)} gives, `s0_out0` ... |"
    if f"{_NAME}.h" in files:
        yield f"| `{_NAME}.h`, `{_NAME}_test.c` | the model, the inputs and the expected outputs as C99, and a test |"
    yield from ("", "## Show it again", "")
    if f"{_NAME}.h" in files:
        yield f"On the device: write `{_NAME}_invoke`, declared in `{_NAME}.h`. It copies the inputs, runs the model"
        yield "of the header, and copies the outputs. The test then returns the number of outputs that differ:"
        yield from ("", "```sh", f"cc -DTFLQ_MAIN {_NAME}_test.c invoke.c", "```", "")
    yield f"With tflq ({version('tflq')}), in the folder of these files:"
    yield from ("", "```sh", *_commands(reduced, profile), "```", "")


def _commands(reduced: Reduced, profile: str) -> Iterator[str]:
    named = "" if profile == "litert-ref" else f" --profile {quote(profile)}"
    if reduced.got is not None:
        yield f"tflq verify model.tflite --golden device.npz{named}  # exit code 1: outputs differ"
    yield f"tflq run model.tflite --inputs device.npz{named}"


def _difference(reduced: Reduced, profile: str, check: str | None) -> Iterator[str]:
    for line in remaining(reduced):
        yield f"{_plain(line)}."
    if reduced.got is None:
        yield f"What the device gives is not recorded. This command shows the difference: `{_code(check or '')}`"
    rows = [
        (i, int(k), e, g)
        for i, (expected, got) in enumerate(zip(reduced.expected, reduced.got or (), strict=False))
        if expected.shape == got.shape
        for k, (e, g) in enumerate(zip(expected.ravel().tolist(), got.ravel().tolist(), strict=True))
        if e != g
    ]
    if rows:
        yield from ("", f"| output | element | {_plain(profile)} | device |", "|---|---|---|---|")
        yield from (f"| {i} | {k} | {e} | {g} |" for i, k, e, g in rows[:_VALUES])
    if len(rows) > _VALUES:
        yield from ("", f"... and {len(rows) - _VALUES} more elements")


def _plain(text: str) -> str:
    """Return text without characters that mean something in Markdown or HTML."""
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", printable(text))


def _code(text: str) -> str:
    """Return text for a span of code in a table."""
    return printable(text).replace("`", "'").replace("|", "/")
