"""The document of any command that fails."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict


class ErrorDocument(TypedDict):
    """The output of any verb with --json if it fails."""

    schema: Literal["tflq/error/1"]
    kind: Annotated[str, "the class of the error"]
    message: str
    exit_code: Annotated[int, ("enum", (2, 3, 4, 70, 130))]
    facts: Annotated[dict[str, Any], "the fields of the error"]
