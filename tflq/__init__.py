"""Bit-exact execution, verification and debugging of quantized .tflite models.

The names below are loaded on first use, so `import tflq` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tflq.interrupts import import_whole

if TYPE_CHECKING:
    from tflq.comparison.inspection.model_diff import diff
    from tflq.comparison.inspection.operators import inspect
    from tflq.comparison.inspection.profile_effects import profile_effects
    from tflq.comparison.inspection.profile_pairs import compare_profiles
    from tflq.comparison.inspection.releases import agreements as profile_releases
    from tflq.comparison.sessions import Session, compare_sessions
    from tflq.comparison.verification import record, verify
    from tflq.comparison.verification.curation import merge_goldens, prune_golden
    from tflq.comparison.verification.goldens import load_golden
    from tflq.devices.conformance.doctor import examine
    from tflq.diagnosis.linting.checking import lint
    from tflq.engine.api.files import load, save
    from tflq.engine.api.interpreter import Interpreter
    from tflq.engine.api.many import run_many
    from tflq.engine.api.options import OpResolverType
    from tflq.engine.api.warming import warm
    from tflq.errors import TflqError
    from tflq.face.report.verbs.export.c import export_c
    from tflq.litert import install_as
    from tflq.model.ir.model import Model
    from tflq.model.surgery.cut import extract
    from tflq.proof import check_certificate, prove, read_certificate
    from tflq.proof.answers import search_answer
    from tflq.quantization.calibration import Calibration
    from tflq.quantization.pipeline import quantize
    from tflq.quantization.recipe.recipe import Recipe
    from tflq.quantization.weights.quantizing import quantize_weights
    from tflq.quantization.weights.recipe import WeightRecipe
    from tflq.verbs.bench import bench
    from tflq.verbs.compare import compare
    from tflq.verbs.conform import (
        check_outputs,
        claim_conformance,
        conform,
        diff_verdicts,
        make_suite,
        merge_verdicts,
        new_target,
        pack_suite,
    )
    from tflq.verbs.court import court
    from tflq.verbs.drift import diff_goldens
    from tflq.verbs.explain import discriminate, explain, explain_element
    from tflq.verbs.fit import fit
    from tflq.verbs.learn import learn
    from tflq.verbs.reduce import reduce
    from tflq.verbs.run import run
    from tflq.verbs.session import session
    from tflq.verbs.why import why

    __version__: str

__all__ = [
    "Calibration",
    "Interpreter",
    "Model",
    "OpResolverType",
    "Recipe",
    "Session",
    "TflqError",
    "WeightRecipe",
    "__version__",
    "bench",
    "check_certificate",
    "check_outputs",
    "claim_conformance",
    "compare",
    "compare_profiles",
    "compare_sessions",
    "conform",
    "court",
    "diff",
    "diff_goldens",
    "diff_verdicts",
    "discriminate",
    "examine",
    "explain",
    "explain_element",
    "export_c",
    "extract",
    "fit",
    "inspect",
    "install_as",
    "learn",
    "lint",
    "load",
    "load_golden",
    "make_suite",
    "merge_goldens",
    "merge_verdicts",
    "new_target",
    "pack_suite",
    "profile_effects",
    "profile_releases",
    "prove",
    "prune_golden",
    "quantize",
    "quantize_weights",
    "read_certificate",
    "record",
    "reduce",
    "run",
    "run_many",
    "save",
    "search_answer",
    "session",
    "verify",
    "warm",
    "why",
]

#: The home of each public name: (module, name there).
_HOMES = {
    "Calibration": ("tflq.quantization.calibration", "Calibration"),
    "Interpreter": ("tflq.engine.api.interpreter", "Interpreter"),
    "Model": ("tflq.model.ir.model", "Model"),
    "OpResolverType": ("tflq.engine.api.options", "OpResolverType"),
    "Recipe": ("tflq.quantization.recipe.recipe", "Recipe"),
    "Session": ("tflq.comparison.sessions", "Session"),
    "TflqError": ("tflq.errors", "TflqError"),
    "WeightRecipe": ("tflq.quantization.weights.recipe", "WeightRecipe"),
    "bench": ("tflq.verbs.bench", "bench"),
    "check_certificate": ("tflq.proof", "check_certificate"),
    "check_outputs": ("tflq.verbs.conform", "check_outputs"),
    "compare": ("tflq.verbs.compare", "compare"),
    "compare_profiles": ("tflq.comparison.inspection.profile_pairs", "compare_profiles"),
    "compare_sessions": ("tflq.comparison.sessions", "compare_sessions"),
    "claim_conformance": ("tflq.verbs.conform", "claim_conformance"),
    "conform": ("tflq.verbs.conform", "conform"),
    "court": ("tflq.verbs.court", "court"),
    "diff": ("tflq.comparison.inspection.model_diff", "diff"),
    "diff_goldens": ("tflq.verbs.drift", "diff_goldens"),
    "diff_verdicts": ("tflq.verbs.conform", "diff_verdicts"),
    "discriminate": ("tflq.verbs.explain", "discriminate"),
    "examine": ("tflq.devices.conformance.doctor", "examine"),
    "explain": ("tflq.verbs.explain", "explain"),
    "explain_element": ("tflq.verbs.explain", "explain_element"),
    "export_c": ("tflq.face.report.verbs.export.c", "export_c"),
    "extract": ("tflq.model.surgery.cut", "extract"),
    "fit": ("tflq.verbs.fit", "fit"),
    "inspect": ("tflq.comparison.inspection.operators", "inspect"),
    "install_as": ("tflq.litert", "install_as"),
    "learn": ("tflq.verbs.learn", "learn"),
    "lint": ("tflq.diagnosis.linting.checking", "lint"),
    "load": ("tflq.engine.api.files", "load"),
    "load_golden": ("tflq.comparison.verification.goldens", "load_golden"),
    "make_suite": ("tflq.verbs.conform", "make_suite"),
    "merge_goldens": ("tflq.comparison.verification.curation", "merge_goldens"),
    "merge_verdicts": ("tflq.verbs.conform", "merge_verdicts"),
    "new_target": ("tflq.verbs.conform", "new_target"),
    "pack_suite": ("tflq.verbs.conform", "pack_suite"),
    "profile_effects": ("tflq.comparison.inspection.profile_effects", "profile_effects"),
    "profile_releases": ("tflq.comparison.inspection.releases", "agreements"),
    "prove": ("tflq.proof", "prove"),
    "prune_golden": ("tflq.comparison.verification.curation", "prune_golden"),
    "quantize": ("tflq.quantization.pipeline", "quantize"),
    "quantize_weights": ("tflq.quantization.weights.quantizing", "quantize_weights"),
    "read_certificate": ("tflq.proof", "read_certificate"),
    "record": ("tflq.comparison.verification", "record"),
    "reduce": ("tflq.verbs.reduce", "reduce"),
    "run": ("tflq.verbs.run", "run"),
    "run_many": ("tflq.engine.api.many", "run_many"),
    "save": ("tflq.engine.api.files", "save"),
    "search_answer": ("tflq.proof.answers", "search_answer"),
    "session": ("tflq.verbs.session", "session"),
    "verify": ("tflq.comparison.verification", "verify"),
    "warm": ("tflq.engine.api.warming", "warm"),
    "why": ("tflq.verbs.why", "why"),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("tflq")
    elif name in _HOMES:
        module, attribute = _HOMES[name]
        value = getattr(import_whole(module), attribute)
    else:
        raise AttributeError(f"module 'tflq' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
