"""The command, run in this process, and the documents that it prints."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tflq.face.cli.main import cli
from tflq.model.ir.model import data_text


def tflq(*words: object, **options: Any) -> Result:
    """Run the command with these words; options are those of click's runner, such as `terminal_width`."""
    return CliRunner().invoke(cli, [str(word) for word in words], **options)


def conform(*words: object) -> Result:
    """Run `tflq conform` with these words."""
    return tflq("conform", *words)


def validate(document: object, kind: str) -> None:
    """Compare a document with the published schema of its kind; skip the test without jsonschema."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.validate(document, json.loads(data_text(f"{kind}.schema.json")))


def document(result: Result, kind: str) -> dict[str, Any]:
    """Return the document that a command printed, which its schema describes."""
    found: dict[str, Any] = json.loads(result.stdout)
    validate(found, kind)
    return found
