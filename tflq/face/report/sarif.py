"""Complaints as SARIF 2.1.0 (OASIS), which GitHub and other CI servers show beside the files they are about."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import tflq
from tflq.escaping import printable
from tflq.face.report.issues import Issue
from tflq.face.report.json import dumps

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HOME = "https://pypi.org/project/tflq/"


def sarif(issues: Sequence[Issue], accepted: Mapping[str, str]) -> str:
    """Return the log as text. `accepted` has the reasons of complaints, by key, that a baseline accepts."""
    rules = {issue.rule: issue.summary for issue in issues}
    run = {
        "tool": {
            "driver": {
                "name": "tflq",
                "version": tflq.__version__,
                "informationUri": _HOME,
                "rules": [{"id": r, "shortDescription": {"text": printable(s)}} for r, s in sorted(rules.items())],
            }
        },
        "results": [_result(issue, accepted.get(issue.key)) for issue in issues],
        "columnKind": "unicodeCodePoints",
    }
    return dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}) + "\n"


def _result(issue: Issue, reason: str | None) -> dict[str, Any]:
    place = {
        "physicalLocation": {"artifactLocation": {"uri": quote(PurePath(issue.file).as_posix())}},
        "logicalLocations": [{"name": printable(issue.place), "kind": "element"}],
    }
    result = {
        "ruleId": issue.rule,
        "level": issue.level,
        "message": {"text": printable(issue.message, 2000)},
        "locations": [place],
        "partialFingerprints": {"tflq/v1": hashlib.sha256(issue.key.encode()).hexdigest()[:32]},
    }
    if reason is not None:
        result["suppressions"] = [{"kind": "external", "justification": printable(reason)}]
    return result
