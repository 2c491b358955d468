"""Real runtimes behind one small protocol. Each run happens in a child process."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from tflq.engine.runtimes.conversion import python_of
from tflq.engine.runtimes.process import FOREIGN, RUNTIMES, ProcessRuntime
from tflq.engine.runtimes.runtime import Description, Invocation, Runtime, RuntimeOutputs, Sample, Stepped
from tflq.errors import OptionError, UnknownNameError

__all__ = [
    "FOREIGN",
    "RUNTIMES",
    "Description",
    "Invocation",
    "ProcessRuntime",
    "Runtime",
    "RuntimeOutputs",
    "Sample",
    "Stepped",
    "by_name",
    "is_named",
    "named",
]

#: The name of a release with a resolver, and packages whose profiles have another name.
_RELEASE = re.compile(r"(?P<family>[a-z-]+)-(?P<release>\d+\.\d+)-(?P<resolver>[a-z]+)")
_FAMILIES = {"tf": "tensorflow", "tflite": "tflite-runtime"}
#: Names of packages, each with the runtime that its interpreter is by default.
_DEFAULTS = {
    "litert": "litert-xnnpack",
    "tensorflow": "tensorflow-xnnpack",
    "tflite-runtime": "tflite-runtime-xnnpack",
    "tflite-micro": "tflm",
}


def is_named(text: str) -> bool:
    """Return whether a text begins with the name of a runtime or a foreign system."""
    word = _split_words(text)[0]
    try:
        return bool(named(word))
    except UnknownNameError:
        return False


def _split_words(text: str) -> list[str]:
    """Return the name, in lower case, and the settings after it."""
    try:
        first, *rest = shlex.split(text) or [""]
    except ValueError:
        first, rest = text, []
    return [first.lower().removeprefix("runtime:"), *rest]


def named(name: str) -> ProcessRuntime:
    """Return the runtime of a name, in any case, such as `litert-ref`, or `litert-2.4-ref` for one release of it.

    The name of a foreign system may have settings after it: `openvino precision=bf16`. The name of a package is its
    interpreter's default.

    Raises:
        UnknownNameError: There is no such runtime or setting.
        OptionError: A setting has no such value.
    """
    word, *settings = _split_words(name)
    if word in FOREIGN:
        return _apply_settings(FOREIGN[word], settings)
    if settings:
        raise OptionError(f"{name!r:.80}: {word} takes no settings; {', '.join(FOREIGN)} do")
    word = _DEFAULTS.get(word, word)
    if word in RUNTIMES:
        return RUNTIMES[word]
    found = _RELEASE.fullmatch(word)
    base = found and f"{_FAMILIES.get(found['family'], found['family'])}-{found['resolver']}"
    if not found or base not in RUNTIMES:
        raise UnknownNameError("runtime", name, (*RUNTIMES, *FOREIGN))
    return replace(RUNTIMES[base], release=found["release"])


def _apply_settings(system: ProcessRuntime, words: Sequence[str]) -> ProcessRuntime:
    """Return a foreign system with its settings, and with a name that contains them."""
    takes, chosen = dict(system.takes), dict[str, str]()
    for word in words:
        name, sign, value = word.partition("=")
        if name not in takes:
            raise UnknownNameError(f"setting of {system.name}", name, tuple(takes))
        if not sign or not value or ("..." not in takes[name] and value not in takes[name]):
            known = ", ".join(one for one in takes[name] if one not in ("", "..."))
            raise OptionError(f"{system.name}: {word!r:.80} is not {name}=VALUE" + (f" ({known})" if known else ""))
        chosen[name] = value
    settings = tuple(chosen.items())
    return replace(system, name=shlex.join((system.name, *map("=".join, settings))), settings=settings)


def by_name(
    runtime: str | Runtime, *, python: str | None = None, threads: int | None = None, timeout: float | None = None
) -> Runtime:
    """Return the runtime of that name, in any case; a Runtime is returned unchanged.

    Names of releases, as profiles have them (`litert-2.4-ref`), are those of their runtimes; another installed release
    is refused when it runs.

    `python` is the path of the Python with the runtime (None: this one, or that of `tflq doctor --install`),
    `timeout` the limit of a run in seconds.
    """
    if not isinstance(runtime, str):
        return runtime
    chosen = named(runtime)
    if python is None and chosen.is_absent:
        python = python_of(chosen.name.split(" ")[0] if chosen.adapter != "litert" else "litert")
    return replace(
        chosen,
        python=python,
        threads=chosen.threads if threads is None else threads,
        timeout=chosen.timeout if timeout is None else timeout,
    )
