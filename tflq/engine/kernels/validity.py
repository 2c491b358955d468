"""Where a row of kernels is valid: the coordinates of a runtime, and conditions on them as data.

`RELEASES` orders the releases of TensorFlow Lite and LiteRT. A release between two of them has the kernels of the later
one.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Releases whose kernels differ from those of the release before, oldest first.
RELEASES = (
    "tf-1.15",
    "tf-2.3",
    "tf-2.5",
    "tflite-2.7",
    "tflite-2.9",
    "tflite-2.11",
    "tflite-2.12",
    "tflite-2.13",
    "tflite-2.14",
    "litert-1.0",
    "litert-1.4",
    "litert-2.0",
    "litert-2.1",
    "litert-2.2",
    "litert-2.3",
)
_ORDER = {release: position for position, release in enumerate(RELEASES)}
#: Libraries other than TensorFlow Lite and LiteRT: TensorFlow Lite Micro, what is built on it, and what is meant.
MICRO, CMSIS_NN, CMSIS_NN_SINGLE, ESP_NN, SPEC = "micro", "cmsis-nn", "cmsis-nn-single", "esp-nn", "spec"
#: Resolvers of TensorFlow Lite and LiteRT. XNNPACK leaves what it does not take to the optimized kernels.
REF, OPT, XNNPACK = "ref", "opt", "xnnpack"


@dataclass(frozen=True, slots=True)
class RuntimeConditions:
    """The coordinates of a runtime: `library` is empty for TensorFlow Lite and LiteRT, whose release the others follow.

    `vectors`: the package holds the vector code that is written for NEON, on x86-64 by way of SSE.
    """

    release: str = "litert-2.3"
    resolver: str = REF
    cpu: str = "x86-64"
    vectors: bool = True
    library: str = ""


@dataclass(frozen=True, slots=True)
class When:
    """A condition on a runtime; what is None or empty is not asked for. `since` and `until` are inclusive."""

    libraries: tuple[str, ...] | None = None
    since: str = RELEASES[0]
    until: str = RELEASES[-1]
    resolvers: tuple[str, ...] = ()
    cpus: tuple[str, ...] = ()
    vectors: bool | None = None

    def __post_init__(self) -> None:
        if not _ORDER[self.since] <= _ORDER[self.until]:
            raise ValueError(f"no release lies between {self.since} and {self.until}")

    def holds(self, runtime: RuntimeConditions) -> bool:
        """Return whether the runtime meets every part of the condition."""
        return (
            (self.libraries is None or runtime.library in self.libraries)
            and _ORDER[self.since] <= _ORDER[runtime.release] <= _ORDER[self.until]
            and (not self.resolvers or runtime.resolver in self.resolvers)
            and (not self.cpus or any(runtime.cpu == cpu or runtime.cpu.startswith(f"{cpu}-") for cpu in self.cpus))
            and (self.vectors is None or runtime.vectors == self.vectors)
        )

    @property
    def precedence(self) -> tuple[int, bool, int, bool, bool]:
        """The rank among the rows that take one signature: the narrower condition is larger and wins.

        A library comes before all others, then vector code, the earlier last release, a resolver, a processor.
        """
        return (
            0 if self.libraries is None else -len(self.libraries) + len(_LIBRARIES) + 1,
            self.vectors is not None,
            -_ORDER[self.until],
            bool(self.resolvers),
            bool(self.cpus),
        )


_LIBRARIES = ("", MICRO, CMSIS_NN, CMSIS_NN_SINGLE, ESP_NN, SPEC)
#: Every runtime.
ALWAYS = When()


def tflite(
    since: str = "tf-2.3", until: str = RELEASES[-1], cpu: str = "", vectors: bool | None = None, resolvers: str = ""
) -> When:
    """Return the condition for releases of TensorFlow Lite and LiteRT, with any resolver."""
    return When(("",), since, until, tuple(resolvers.split()), tuple(cpu.split()), vectors)


def ref(since: str = "tf-2.3", until: str = RELEASES[-1], cpu: str = "", vectors: bool | None = None) -> When:
    """Return the condition for the reference resolver."""
    return tflite(since, until, cpu, vectors, REF)


def opt(since: str = "tf-2.3", until: str = RELEASES[-1], cpu: str = "", vectors: bool | None = None) -> When:
    """Return the condition for the optimized resolver, which runs what XNNPACK leaves, too."""
    return tflite(since, until, cpu, vectors, f"{OPT} {XNNPACK}")


def xnnpack(since: str = "tf-2.3", until: str = RELEASES[-1], cpu: str = "") -> When:
    """Return the condition for XNNPACK, which takes operators before the optimized resolver does."""
    return tflite(since, until, cpu, None, XNNPACK)


def tf1(resolvers: str = "") -> When:
    """Return the condition for TensorFlow r1.15."""
    return tflite("tf-1.15", "tf-1.15", resolvers=resolvers)


def micro(*also: str, until: str = RELEASES[-1]) -> When:
    """Return the condition for TensorFlow Lite Micro and the libraries on it, and for the libraries in `also`.

    It has no releases: `until` is the release of LiteRT before which its build was made.
    """
    return When((MICRO, CMSIS_NN, CMSIS_NN_SINGLE, ESP_NN, *also), until=until)


def cmsis_nn() -> When:
    """Return the condition for TensorFlow Lite Micro with CMSIS-NN."""
    return When((CMSIS_NN, CMSIS_NN_SINGLE))


def spec() -> When:
    """Return the condition for what is meant: `litert-ref` without its known faults."""
    return When((SPEC,))
