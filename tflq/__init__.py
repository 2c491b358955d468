"""Bit-exact execution, verification and debugging of quantized .tflite models.

The names below are loaded on first use, so `import tflq` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tflq.interrupts import import_whole

if TYPE_CHECKING:
    from tflq.api.files import load, save
    from tflq.api.interpreter import Interpreter
    from tflq.api.many import run_many
    from tflq.api.options import OpResolverType
    from tflq.diagnosis.session import discriminate, explain, fit, reduce
    from tflq.errors import TflqError
    from tflq.inspection.model_diff import diff
    from tflq.inspection.operators import inspect
    from tflq.inspection.profile_effects import profile_effects
    from tflq.inspection.profile_pairs import compare_profiles
    from tflq.ir.model import Model
    from tflq.linting.session import lint
    from tflq.litert import install_as
    from tflq.proof import check_certificate, prove, read_certificate
    from tflq.quantization.calibration import Calibration
    from tflq.quantization.judge.comparison import compare
    from tflq.quantization.pipeline import quantize
    from tflq.quantization.recipe.recipe import Recipe
    from tflq.quantization.weights.quantizing import quantize_weights
    from tflq.quantization.weights.recipe import WeightRecipe
    from tflq.sessions import Session, compare_sessions
    from tflq.verification import record, verify

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
    "Interpreter": ("tflq.api.interpreter", "Interpreter"),
    "Model": ("tflq.ir.model", "Model"),
    "OpResolverType": ("tflq.api.options", "OpResolverType"),
    "Recipe": ("tflq.quantization.recipe.recipe", "Recipe"),
    "Session": ("tflq.sessions", "Session"),
    "TflqError": ("tflq.errors", "TflqError"),
    "WeightRecipe": ("tflq.quantization.weights.recipe", "WeightRecipe"),
    "check_certificate": ("tflq.proof", "check_certificate"),
    "compare": ("tflq.quantization.judge.comparison", "compare"),
    "compare_profiles": ("tflq.inspection.profile_pairs", "compare_profiles"),
    "compare_sessions": ("tflq.sessions", "compare_sessions"),
    "diff": ("tflq.inspection.model_diff", "diff"),
    "discriminate": ("tflq.diagnosis.session", "discriminate"),
    "explain": ("tflq.diagnosis.session", "explain"),
    "fit": ("tflq.diagnosis.session", "fit"),
    "inspect": ("tflq.inspection.operators", "inspect"),
    "install_as": ("tflq.litert", "install_as"),
    "lint": ("tflq.linting.session", "lint"),
    "load": ("tflq.api.files", "load"),
    "profile_effects": ("tflq.inspection.profile_effects", "profile_effects"),
    "prove": ("tflq.proof", "prove"),
    "quantize": ("tflq.quantization.pipeline", "quantize"),
    "quantize_weights": ("tflq.quantization.weights.quantizing", "quantize_weights"),
    "read_certificate": ("tflq.proof", "read_certificate"),
    "record": ("tflq.verification", "record"),
    "reduce": ("tflq.diagnosis.session", "reduce"),
    "run_many": ("tflq.api.many", "run_many"),
    "save": ("tflq.api.files", "save"),
    "verify": ("tflq.verification", "verify"),
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
