"""Profiles, alone, in pairs and on a model as a document: `schemas/profiles.schema.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tflq.comparison.inspection.profile_effects import Effects
from tflq.comparison.inspection.profile_pairs import PairDifference
from tflq.comparison.inspection.releases import Agreements
from tflq.engine.profiles import Profile
from tflq.face.report.documents.profiles import (
    AgreementDocument,
    ComparisonDocument,
    EffectDocument,
    ListDocument,
    ProfileDocument,
    RowDifferenceDocument,
)
from tflq.face.report.documents.shared import facts_document, fields_of


def list_document(profiles: Sequence[Profile]) -> ListDocument:
    """Return the known profiles as a document."""
    return {"schema": "tflq/profiles/1", "profiles": [_profile(p) for p in profiles]}


def _profile(profile: Profile) -> ProfileDocument:
    source: Any = fields_of(profile.source)
    return cast(ProfileDocument, {"name": profile.name, **source})


def pair_document(first: str, second: str, differences: Sequence[PairDifference]) -> ComparisonDocument:
    """Return where two profiles differ as a document."""
    rows: list[RowDifferenceDocument] = [
        {
            "op": d.op,
            "types": list(d.types),
            "primitives": [fields_of(primitive) for primitive in d.primitives],
            "notes": list(d.notes),
        }
        for d in differences
    ]
    return {"schema": "tflq/profiles/1", "compared": [first, second], "differences": rows}


def effects_document(effects: Effects) -> EffectDocument:
    """Return what profiles do to a model as a document, operators that none of them touches included."""
    return {
        "schema": "tflq/profiles/1",
        "model": facts_document(effects.model),
        "base": effects.base,
        "against": list(effects.profiles),
        "operators": [
            {
                "subgraph": o.subgraph,
                "index": o.index,
                "op": o.op,
                "types": o.types,
                "effects": [fields_of(effect) for effect in o.effects],
                "proved": list(o.proved),
                "refused": o.refused or None,
            }
            for o in effects.operators
        ],
    }


def agreements_document(found: Agreements) -> AgreementDocument:
    """Return which releases agree on a model as a document."""
    return {
        "schema": "tflq/profiles/1",
        "model": facts_document(found.model),
        "since": found.since,
        "operators": list(found.operators),
        "places": list(found.places),
        "agreements": [
            {"resolver": a.resolver, "releases": list(a.releases), "apart": list(a.apart)} for a in found.agreements
        ],
    }
