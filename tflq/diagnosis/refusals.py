"""Logs of runtimes that refuse a model: the cause in a line, and the change that makes it run.

Texts are those of TensorFlow Lite and LiteRT 2.3 (core/api/op_resolver.cc, core/subgraph.cc, kernels/kernel_util.cc),
TensorFlow Lite Micro of October 2026 (micro_allocator.cc, memory_planner, micro_mutable_op_resolver.h), the Edge TPU
compiler 16 and the delegates of the GPU and XNNPACK.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.rules import need
from tflq.engine.kernels.validity import RELEASES
from tflq.model.ir import Model, TensorType, view
from tflq.model.ir.graph import OperatorView
from tflq.texts import Statement, quoted

_Said = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LoggedRefusal:
    """A line of a log in which a runtime refuses the model: what it means, and what to change.

    `operator` is the index and name of the operator that it is about, if it names one of the model's.
    """

    line: int
    cause: Statement
    fix: str
    operator: tuple[int, str] | None = None

    @property
    def is_explained(self) -> bool:
        """True if the line gives the reason, not only that there is one."""
        return self.cause.kind not in ("refused-failed", "refused-allocation")


def find_refusal(model: Model, text: str) -> LoggedRefusal | None:
    """Return the cause that a log gives for a refused model, before its consequences; None if no line is known."""
    lines = [line[:_LONGEST] for line in text.splitlines()]
    for kind, pattern, say in _ROWS:
        for number, line in enumerate(lines, 1):
            found = pattern.search(line)
            if found is not None:
                op = _named(model, found.groupdict())
                cause, fix = say(found, model, op)
                where = None if op is None else (op.index, op.name)
                return LoggedRefusal(number, Statement(cause, f"refused-{kind}", line=number), fix, where)
    return None


#: Longest part of a line that is read.
_LONGEST = 2000


def _named(model: Model, groups: Mapping[str, str | None]) -> OperatorView | None:
    """Return the operator that a line names, by number and name or by name alone."""
    name, number = groups.get("op") or "", groups.get("at")
    ops = view(model).ops
    if number is not None and int(number) < len(ops) and (not name or ops[int(number)].name == name):
        return ops[int(number)]
    return next((op for op in ops if name and op.name == name), None)


def _plain(cause: str, fix: str) -> Callable[[re.Match[str], Model, OperatorView | None], _Said]:
    """Return a row's answer: texts with the names of the pattern's groups in braces."""

    def say(found: re.Match[str], model: Model, op: OperatorView | None) -> _Said:
        groups = {name: quoted(value or "") for name, value in found.groupdict().items()}
        groups["op"] = groups.get("op", "").strip("'\"") or ("an operator" if op is None else op.name)
        return cause.format(**groups), fix.format(**groups)

    return say


def _unknown_operator(found: re.Match[str], model: Model, op: OperatorView | None) -> _Said:
    name, version = found["op"], int(found.groupdict().get("version") or 0)
    fact = OPERATORS.get(name)
    micro = f"for TensorFlow Lite Micro call `resolver.{_registration(name)}();`"
    if fact is not None and not fact.micro:
        micro = "TensorFlow Lite Micro has no such operator"
    if not version:
        return f"the resolver has no kernel of {name}", micro
    least = 1 if op is None else _least_version(op)
    releases = list(_releases_with(name, version))
    since = f"take {releases[0]} or a newer release" if releases else "take the newest release"
    cause = f"the runtime has no kernel of {name} version {version}: it is older, or its resolver lacks the operator"
    lower = f", or lower the version: its types need {least} only" if least < version else ""
    return cause, f"{since}{lower}; {micro}"


def _least_version(op: OperatorView) -> int:
    """Return the version that the operator's types need."""
    specs = op.input_specs
    types = [s.type if s is not None and isinstance(s.type, TensorType) else None for s in specs]
    scales = [len(s.quantization.scale) for s in specs if s is not None and s.quantization is not None]
    return need(op.name, types, per_channel=any(count > 1 for count in scales))


def _releases_with(name: str, version: int) -> Iterator[str]:
    """Yield the releases whose resolvers register an operator in a version, oldest first."""
    for release in RELEASES[:-1] if name in OPERATORS else ():
        package, _, number = release.partition("-")
        if max(OPERATORS[name].highest(number, optimized) for optimized in (False, True)) >= version:
            yield f"{_PACKAGES[package]} {number}"


#: Packages by the beginning of a release's name.
_PACKAGES = {"tf": "TensorFlow", "tflite": "TensorFlow Lite", "litert": "LiteRT"}
#: Names of TensorFlow Lite Micro's calls that are not the operator's words.
_CALLS = {
    "BATCH_MATMUL": "BatchMatMul",
    "CUMSUM": "CumSum",
    "PADV2": "PadV2",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTM",
}


def _registration(name: str) -> str:
    """Return the call that adds an operator to a MicroMutableOpResolver, without its parentheses."""
    words = (word if word[:1].isdigit() else word.capitalize() for word in name.split("_"))
    return "Add" + _CALLS.get(name, "".join(words))


def _small_arena(found: re.Match[str], model: Model, op: OperatorView | None) -> _Said:
    asked, there = int(found["asked"]), int(found["there"])
    missing = asked - there
    cause = (
        f"the tensor arena is too small: {asked:,} bytes were asked for, {there:,} were left, {missing:,} are missing"
    )
    return cause, f"make the arena at least {missing:,} bytes larger; allocations after this one may need more"


def _small_resolver(found: re.Match[str], model: Model, op: OperatorView | None) -> _Said:
    count = len({op.name for op in view(model).ops})
    cause = f"the resolver has room for {found['size']} operators, and the model has {count} different ones"
    return cause, f"declare `tflite::MicroMutableOpResolver<{count}>`"


def _failed_operator(found: re.Match[str], model: Model, op: OperatorView | None) -> _Said:
    name = "an operator" if op is None else f"operator {op.index} {op.name}"
    step = "prepare" if "prepare" in found[0].lower() else "run"
    fix = "give the lines above it: they hold the reason; `tflq lint MODEL --target NAME` asks a runtime's own rules"
    return f"the runtime could not {step} {name}; the log does not say why", fix


_NUMBER = r"(?P<at>\d{1,9})"
_OP = r"(?P<op>[A-Za-z][\w]{0,60})"
#: Kind, pattern and answer, in the order in which they decide: causes, then what only follows from them.
_ROWS: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str], Model, OperatorView | None], _Said]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE), say)
    for kind, pattern, say in (
        (
            "resolver-size",
            r"Couldn't register \w+ op .{0,60}resolver size is too small \((?P<size>\d+)\)",
            _small_resolver,
        ),
        (
            "operator",
            rf"Didn't find op for builtin opcode '{_OP}'(?: version '(?P<version>\d{{1,4}})')?",
            _unknown_operator,
        ),
        (
            "edge-tpu",
            r"unresolved custom op: edgetpu-custom-op",
            _plain(
                "the file was compiled for the Edge TPU, and the interpreter has no Edge TPU delegate",
                "load the delegate (`load_delegate('libedgetpu.so.1')`), or run the file from before the compiler",
            ),
        ),
        (
            "flex",
            r"Select TensorFlow op|(?P<custom>Flex\w{1,60})",
            _plain(
                "the model has TensorFlow operators (Flex), which the runtime lacks",
                "convert with `target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]`, or link the Flex "
                "delegate",
            ),
        ),
        (
            "custom",
            r"unresolved custom op: ?(?P<custom>[\w.:-]{1,80})",
            _plain(
                "no kernel is registered for the custom operator {custom}",
                "register it: `resolver.AddCustom(name, registration)`, in Python `custom_op_registerers=[...]`",
            ),
        ),
        ("arena", r"Requested: (?P<asked>\d{1,12}),? available:? (?P<there>\d{1,12})", _small_arena),
        ("arena", r"Needed (?P<asked>\d{1,12}) but only (?P<there>\d{1,12})", _small_arena),
        (
            "arena",
            r"Failed to allocate (?:tail|memory|temp|variable|persistent)|arena.{0,20}too small",
            _plain(
                "the tensor arena is too small", "make the arena larger; `interpreter.arena_used_bytes()` tells its use"
            ),
        ),
        (
            "hybrid",
            r"Hybrid models are not supported",
            _plain(
                "the model is hybrid: float activations with integer weights, which TensorFlow Lite Micro does not run",
                "quantize activations too: `converter.representative_dataset = ...`, or `tflq quantize`",
            ),
        ),
        (
            "schema",
            r"schema version (?P<got>-?\d{1,12}) (?:is )?not equal to supported",
            _plain(
                "the bytes that the program reads are no model: its schema version is {got}",
                "check the array's length, its alignment (`alignas(16)`) and that the file was embedded whole",
            ),
        ),
        (
            "file",
            r"model identifier|not a valid Flatbuffer|Model provided has",
            _plain(
                "the bytes that the program reads are no .tflite model, or a part of one",
                "check the path, and the length and alignment of the array; `tflq inspect FILE` reads the file here",
            ),
        ),
        (
            "dynamic",
            r"only supports static-sized tensors",
            _plain(
                "the delegate takes fixed shapes only, and the model has open ones",
                "convert with a fixed input shape, or call ResizeInputTensor before the delegate is applied",
            ),
        ),
        (
            "edge-tpu-types",
            rf"{_OP}\s+\d+\s+Operation is working on an unsupported data type",
            _plain(
                "the Edge TPU computes {op} with 8-bit integers only, and it has another type",
                "quantize all: `supported_ops = [TFLITE_BUILTINS_INT8]`, `converter.inference_input_type = tf.uint8`",
            ),
        ),
        (
            "edge-tpu-operator",
            rf"{_OP}\s+\d+\s+(?P<why>Operation (?:version )?not supported|More than one subgraph is not supported"
            r"|Tensor has unsupported rank[^|]{0,60}|Operation is otherwise supported[^|]{0,80})",
            _plain("the Edge TPU does not take {op}: {why}", "the operator runs on the CPU, and so do those behind it"),
        ),
        (
            "gpu",
            rf"^\W*{_OP}: (?P<why>(?:Operation is not supported|Not supported|Expected)\b.{{0,200}})",
            _plain(
                "the GPU delegate does not take {op}: {why}", "the operator runs on the CPU; the rest can stay there"
            ),
        ),
        (
            "types",
            r"(?P<why>\btypes?:? '?\w+ ?(?:\(\d+\))?.{0,60}? not supported.{0,100})",
            _plain("a kernel does not take these types: {why}", "`tflq lint MODEL --target NAME` names the operator"),
        ),
        (
            "condition",
            r"(?P<why>\w+\.(?:cc|h):\d+ .{3,160}(?:was not true|!=|==).{0,60})",
            _plain("a kernel's condition does not hold: {why}", "`tflq lint MODEL --target NAME` names the operator"),
        ),
        (
            "delegate",
            r"Failed to (?:apply|load) (?:the )?(?:\w+ )?delegate|failed to delegate|Failed to setup XNNPACK",
            _plain(
                "the delegate does not take the model",
                "run without it: in Python `OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES`",
            ),
        ),
        ("failed", rf"Node number {_NUMBER} \({_OP}\) failed to (?:prepare|invoke)", _failed_operator),
        ("failed", rf"Node {_OP} \(number {_NUMBER}f?\) failed to (?:prepare|invoke)", _failed_operator),
        ("operator", rf"Failed to get registration from op code {_OP}", _unknown_operator),
        (
            "allocation",
            r"AllocateTensors\(\)?.{0,10} failed|Failed starting model allocation|allocate_tensors failed",
            _plain(
                "the runtime did not take the model; the log does not say why",
                "give the lines above it: they hold the reason",
            ),
        ),
    )
)
