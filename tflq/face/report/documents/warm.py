"""The document of `tflq doctor --warm`."""

from __future__ import annotations

from typing import Annotated, Literal

from tflq.face.report.documents.shared import Printed


class WarmDocument(Printed):
    """The output of `tflq doctor --warm --json`: what was compiled ahead."""

    schema: Literal["tflq/warm/1"]
    models: int
    functions: Annotated[int, "compiled now, counted by their argument types; 0: all were kept already"]
    seconds: Annotated[float, "of compiling"]
    folder: Annotated[str, "where machine code is kept"]
