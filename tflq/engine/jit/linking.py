"""Compiled functions that only other compiled functions call.

By default numba compiles every function to machine code that Python can call, and again for each constant argument. For
most functions here that code would never run: they are inlined where they are called. So these are kept as LLVM's
intermediate code, which is optimized once, in the machine code of the function that Python calls.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

#: Minor versions of numba whose private interfaces these are; with others plain functions are compiled.
TESTED = tuple(f"0.{minor}" for minor in range(62, 69))


def link(function: Any) -> Any:
    """Return a numba dispatcher of `function` for compiled callers. Python must not call it."""
    import numba

    if not is_known():
        return numba.njit(error_model="numpy")(function)
    dispatcher = numba.njit(
        error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_parts()[0]
    )(function)
    dispatcher.__class__ = _parts()[1]
    return dispatcher


@cache
def is_known() -> bool:
    """Return whether the installed numba has the interfaces used here; a warning, once, if it has not."""
    import numba

    minor = ".".join(numba.__version__.split(".")[:2])
    reason = "" if minor in TESTED else f"tested with {TESTED[0]} to {TESTED[-1]}"
    if not reason:
        try:
            _parts()
        except (ImportError, AttributeError, TypeError) as error:
            reason = str(error)
    if reason:
        text = "tflq: numba %s compiles every function by itself, which takes longer (%s)"
        logging.getLogger("tflq").warning(text, numba.__version__, reason)
    return not reason


@cache
def _parts() -> tuple[Any, Any]:
    """Return the compiler and the class of these dispatchers."""
    from numba import _dynfunc
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, _LowerResult
    from numba.core.compiler_machinery import register_pass
    from numba.core.registry import CPUDispatcher
    from numba.core.runtime import rtsys
    from numba.core.typed_passes import NativeLowering
    from numba.core.types.misc import unliteral

    class Library(JITCodeLibrary):  # type: ignore[misc]
        """Intermediate code with that of all functions it calls, neither optimized nor compiled to machine code."""

        def finalize(self) -> None:
            for library in dict.fromkeys(self._linking_libraries):
                if library is not rtsys.library:  # it is linked to the function that Python calls
                    self._final_module.link_in(library._get_module_for_linking(), preserve=True)
            self._finalized = True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Lowering(NativeLowering):  # type: ignore[misc]
        """Lowering to intermediate code, under a name of its own in the typing context."""

        _name = "tflq_lowering"

        def run_pass(self, state: Any) -> bool:
            state.library = Library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = True
            super().run_pass(state)
            described, environment = state["cr"].fndesc, state["cr"].env
            # numba identifies a function by a Python object; this one has no address.
            known = _dynfunc.make_function(
                described.lookup_module(), described.qualname, "", 0, environment, (state.library,)
            )
            state.targetctx.insert_user_function(known, described, [state.library])
            state["cr"] = _LowerResult(described, state["cr"].call_helper, known, environment)
            return True

    class LinkedCompiler(Compiler):  # type: ignore[misc]
        def define_pipelines(self) -> list[Any]:
            (pipeline,) = super().define_pipelines()
            pipeline.passes = [(Lowering if each is NativeLowering else each, why) for each, why in pipeline.passes]
            return [pipeline]

    class LinkedDispatcher(CPUDispatcher):  # type: ignore[misc]
        def get_call_template(self, args: Any, kws: Any) -> Any:
            """Return numba's template, with the types of constants in place of their values."""
            plain = {name: unliteral(kind) for name, kind in kws.items()}
            return super().get_call_template(tuple(map(unliteral, args)), plain)

    return LinkedCompiler, LinkedDispatcher
