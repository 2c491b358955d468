"""The documents of commands that write files: what was written, and how much."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from tflq.face.report.documents.shared import Printed


class MadeDocument(Printed):
    """The output of `tflq conform make --json`."""

    schema: Literal["tflq/conform-make/1"]
    output: str
    cases: int
    left_out: Annotated[int, "drafts that the profile refuses"]


class PackedDocument(Printed):
    """The output of `tflq conform pack --json`."""

    schema: Literal["tflq/conform-pack/1"]
    output: str
    cases: int


class NewTargetDocument(Printed):
    """The output of `tflq conform new-target --json`."""

    schema: Literal["tflq/conform-new-target/1"]
    path: str
    build: Annotated[str, "the command that compiles it; empty where nothing is compiled"]
    command: Annotated[str, "the target's command line"]


class GoldenShowDocument(Printed):
    """The output of `tflq golden show --json`."""

    schema: Literal["tflq/golden-show/1"]
    golden: str
    arrays: int
    different: Annotated[int, "arrays with other elements than all before them"]
    manifest: Annotated[dict[str, Any], "as in a bundle"]


class GoldenMergeDocument(Printed):
    """The output of `tflq golden merge --json`."""

    schema: Literal["tflq/golden-merge/1"]
    output: str
    samples: int


class GoldenPruneDocument(Printed):
    """The output of `tflq golden prune --json`."""

    schema: Literal["tflq/golden-prune/1"]
    output: str
    samples: int


class ExportCDocument(Printed):
    """The output of `tflq golden export --json`."""

    schema: Literal["tflq/export-c/1"]
    files: list[str]
    samples: int


class ExportVerilogDocument(Printed):
    """The output of `tflq golden export --verilog --json`."""

    schema: Literal["tflq/export-verilog/1"]
    files: list[str]
    op: str
    stage: str
    elements: int
    recorded: Annotated[bool, "whether results of a recording were compared"]
    coverage: Annotated[dict[str, int], "elements of each case of the stage"]


class InstalledDocument(Printed):
    """The output of `tflq doctor --install --json`."""

    schema: Literal["tflq/installed/1"]
    target: str
    python: str
    packages: list[str]
