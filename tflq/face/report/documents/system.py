"""Documents of `tflq bench`, `doctor` and of written files.

The document of `tflq bench`.

The document of `tflq doctor`.

The document of `tflq doctor --warm`.

The documents of commands that write files: what was written, and how much.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from tflq.comparison.goldens.manifest import InputsDocument, RuntimeDocument
from tflq.face.report.documents.filling import SELF, Of
from tflq.face.report.documents.shared import ModelDocument, PrintedDocument


class BenchDocument(PrintedDocument):
    """The output of `tflq bench --json`."""

    schema: Literal["tflq/bench/1"]
    model: Annotated[ModelDocument, Of("facts")]
    profiles: list[str]
    threads: int
    kernels: str
    missing: dict[str, str]
    notes: list[str]
    interrupted: bool
    cases: list[TimedCaseDocument]


class TimedCaseDocument(TypedDict):
    signature: Annotated[str | None, Of("name")]
    inputs: InputsDocument
    sides: list[SideDocument]
    operators: list[TimedOperatorDocument]


#: The keys that Python has as words.
_Importing = TypedDict(
    "_Importing", {"import": Annotated[float, Of("imported"), "seconds, as all times; of importing the runtime"]}
)


class SideDocument(_Importing):
    name: str
    kind: Annotated[str, ("enum", ("profile", "runtime"))]
    runtime: Annotated[RuntimeDocument | None, Of("description")]
    failure: str | None
    load: Annotated[float, Of("loaded")]
    first: Annotated[float, "The first run, with the allocation of tensors"]
    median: float | None
    minimum: float | None
    invokes: int
    turns: int
    peak: Annotated[int | None, "Largest resident memory, in bytes"]
    bits: Annotated[
        str, ("enum", ("same", "differs", "not compared")), "Outputs compared with those of the first side, bit by bit"
    ]
    bits_reason: Annotated[str | None, Of("reason")]
    ratio: Annotated[
        RatioDocument | None,
        "Times of the first side over this one's, turn by turn: median and quartiles; and of the smallest times",
    ]


class RatioDocument(TypedDict):
    median: float
    minimum: float
    low: float
    high: float


class TimedOperatorDocument(TypedDict):
    index: int
    op: str
    seconds: float
    macs: int
    rate: float | None


class DoctorDocument(PrintedDocument):
    """The output of `tflq doctor --json`: this machine, its runtimes, and a self-test."""

    schema: Literal["tflq/doctor/1"]
    tflq: str
    python: str
    numpy: str
    numba: str
    platform: str
    kernels: Annotated[str, "the instructions that integer products take, or none"]
    machine_code: Annotated[str, "the folder of compiled code"]
    shipped: Annotated[
        str,
        "the beginning of the SHA-256 of the machine code that came with tflq for this processor; empty if "
        "there is none",
    ]
    runtimes: list[InstalledDocument]
    self_test: Annotated[SelfTestDocument, SELF]


class SelfTestDocument(TypedDict):
    cases: Annotated[int, Of("tested"), "0: left out, as inputs are drawn otherwise here"]
    problem: Annotated[str | None, Of("failing")]


class InstalledDocument(TypedDict):
    name: str
    package: str
    version: Annotated[str | None, "null: not installed"]
    profile: Annotated[str | None, "the profile that it stands for"]
    reason: str


class WarmDocument(PrintedDocument):
    """The output of `tflq doctor --warm --json`: what was compiled ahead."""

    schema: Literal["tflq/warm/1"]
    models: int
    functions: Annotated[int, "compiled now, counted by their argument types; 0: all were kept already"]
    seconds: Annotated[float, "of compiling"]
    folder: Annotated[str, "where machine code is kept"]


class WrittenSuiteDocument(PrintedDocument):
    """The output of `tflq conform make --json`."""

    schema: Literal["tflq/conform-make/1"]
    output: str
    cases: int
    left_out: Annotated[int, "drafts that the profile refuses"]


class PackedDocument(PrintedDocument):
    """The output of `tflq conform pack --json`."""

    schema: Literal["tflq/conform-pack/1"]
    output: str
    cases: int


class NewTargetDocument(PrintedDocument):
    """The output of `tflq conform new-target --json`."""

    schema: Literal["tflq/conform-new-target/1"]
    path: str
    build: Annotated[str, "the command that compiles it; empty where nothing is compiled"]
    command: Annotated[str, "the target's command line"]


class GoldenShowDocument(PrintedDocument):
    """The output of `tflq golden show --json`."""

    schema: Literal["tflq/golden-show/1"]
    golden: str
    arrays: int
    different: Annotated[int, "arrays with other elements than all before them"]
    manifest: Annotated[dict[str, Any], "as in a bundle"]


class GoldenMergeDocument(PrintedDocument):
    """The output of `tflq golden merge --json`."""

    schema: Literal["tflq/golden-merge/1"]
    output: str
    samples: int


class GoldenPruneDocument(PrintedDocument):
    """The output of `tflq golden prune --json`."""

    schema: Literal["tflq/golden-prune/1"]
    output: str
    samples: int


class ExportCDocument(PrintedDocument):
    """The output of `tflq golden export --json`."""

    schema: Literal["tflq/export-c/1"]
    files: list[str]
    samples: int


class ExportVerilogDocument(PrintedDocument):
    """The output of `tflq golden export --verilog --json`."""

    schema: Literal["tflq/export-verilog/1"]
    files: list[str]
    op: str
    stage: str
    elements: int
    recorded: Annotated[bool, "whether results of a recording were compared"]
    coverage: Annotated[dict[str, int], "elements of each case of the stage"]


class InstalledTargetDocument(PrintedDocument):
    """The output of `tflq doctor --install --json`."""

    schema: Literal["tflq/installed/1"]
    target: str
    python: str
    packages: list[str]
