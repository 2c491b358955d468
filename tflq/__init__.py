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
    from tflq.comparison.sessions import Session, compare_sessions
    from tflq.comparison.verification import record, verify
    from tflq.diagnosis.linting.session import lint
    from tflq.diagnosis.session import discriminate, explain, fit, reduce
    from tflq.engine.api.files import load, save
    from tflq.engine.api.interpreter import Interpreter
    from tflq.engine.api.many import run_many
    from tflq.engine.api.options import OpResolverType
    from tflq.errors import TflqError
    from tflq.litert import install_as
    from tflq.model.ir.model import Model
    from tflq.proof import check_certificate, prove, read_certificate
    from tflq.quantization.calibration import Calibration
    from tflq.quantization.judge.comparison import compare
    from tflq.quantization.pipeline import quantize
    from tflq.quantization.recipe.recipe import Recipe
    from tflq.quantization.weights.quantizing import quantize_weights
    from tflq.quantization.weights.recipe import WeightRecipe

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
    "check_certificate",
    "compare",
    "compare_profiles",
    "compare_sessions",
    "diff",
    "discriminate",
    "explain",
    "fit",
    "inspect",
    "install_as",
    "lint",
    "load",
    "profile_effects",
    "prove",
    "quantize",
    "quantize_weights",
    "read_certificate",
    "record",
    "reduce",
    "run_many",
    "save",
    "verify",
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
    "check_certificate": ("tflq.proof", "check_certificate"),
    "compare": ("tflq.quantization.judge.comparison", "compare"),
    "compare_profiles": ("tflq.comparison.inspection.profile_pairs", "compare_profiles"),
    "compare_sessions": ("tflq.comparison.sessions", "compare_sessions"),
    "diff": ("tflq.comparison.inspection.model_diff", "diff"),
    "discriminate": ("tflq.diagnosis.session", "discriminate"),
    "explain": ("tflq.diagnosis.session", "explain"),
    "fit": ("tflq.diagnosis.session", "fit"),
    "inspect": ("tflq.comparison.inspection.operators", "inspect"),
    "install_as": ("tflq.litert", "install_as"),
    "lint": ("tflq.diagnosis.linting.session", "lint"),
    "load": ("tflq.engine.api.files", "load"),
    "profile_effects": ("tflq.comparison.inspection.profile_effects", "profile_effects"),
    "prove": ("tflq.proof", "prove"),
    "quantize": ("tflq.quantization.pipeline", "quantize"),
    "quantize_weights": ("tflq.quantization.weights.quantizing", "quantize_weights"),
    "read_certificate": ("tflq.proof", "read_certificate"),
    "record": ("tflq.comparison.verification", "record"),
    "reduce": ("tflq.diagnosis.session", "reduce"),
    "run_many": ("tflq.engine.api.many", "run_many"),
    "save": ("tflq.engine.api.files", "save"),
    "verify": ("tflq.comparison.verification", "verify"),
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
