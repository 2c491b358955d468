"""Profiles, alone, in pairs and on a model as a document: `schemas/profiles.schema.json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tflq.comparison.inspection.profile_effects import Effects
from tflq.comparison.inspection.profile_pairs import PairDifference
from tflq.comparison.inspection.releases import Agreements
from tflq.engine.profiles import Profile
from tflq.face.report.documents import facts_document

SCHEMA = "tflq/profiles/1"


def list_document(profiles: Sequence[Profile]) -> dict[str, Any]:
    """Return the known profiles as a document."""
    return {"schema": SCHEMA, "profiles": [{"name": p.name, **asdict(p.source)} for p in profiles]}


def pair_document(first: str, second: str, differences: Sequence[PairDifference]) -> dict[str, Any]:
    """Return where two profiles differ as a document."""
    rows = [
        {
            "op": d.op,
            "types": list(d.types),
            "primitives": [asdict(primitive) for primitive in d.primitives],
            "notes": list(d.notes),
        }
        for d in differences
    ]
    return {"schema": SCHEMA, "compared": [first, second], "differences": rows}


def effects_document(effects: Effects) -> dict[str, Any]:
    """Return what profiles do to a model as a document, operators that none of them touches included."""
    return {
        "schema": SCHEMA,
        "model": facts_document(effects.model),
        "base": effects.base,
        "against": list(effects.profiles),
        "operators": [
            {
                "subgraph": o.subgraph,
                "index": o.index,
                "op": o.op,
                "types": o.types,
                "effects": [asdict(effect) for effect in o.effects],
                "proved": list(o.proved),
                "refused": o.refused or None,
            }
            for o in effects.operators
        ],
    }


def agreements_document(found: Agreements) -> dict[str, Any]:
    """Return which releases agree on a model as a document."""
    return {
        "schema": SCHEMA,
        "model": facts_document(found.model),
        "since": found.since,
        "operators": list(found.operators),
        "places": list(found.places),
        "agreements": [
            {"resolver": a.resolver, "releases": list(a.releases), "apart": list(a.apart)} for a in found.agreements
        ],
    }
