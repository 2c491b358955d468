"""The manifest of a golden bundle as a type (docs/golden-format.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from tflq.typing import Count

if TYPE_CHECKING:
    from typing import NotRequired


class GoldenDocument(TypedDict):
    """Manifest.json of a golden bundle (docs/golden-format.md)."""

    schema: Literal["tflq/golden/1"]
    model_sha256: Annotated[str, "of the .tflite file; empty: unknown", ("pattern", "^([0-9a-f]{64})?$")]
    runtime: Annotated[RuntimeDocument, "exactly what ran; empty where that is unknown"]
    profile: Annotated[str, "the profile that stands for the runtime; empty where there is none"]
    inputs: Annotated[RecordedInputsDocument, "a generator and its seed, or where the inputs came from"]
    samples: Annotated[int, "lines of samples.jsonl", ("minimum", 1)]
    tensors: Annotated[bool, "whether samples hold all of the operators' results"]
    tolerances: list[ToleranceDocument]
    notes: list[str]
    unwritten: NotRequired[
        Annotated[
            list[UnwrittenDocument],
            "tensors that the runtime never writes: samples hold no values for them; absent: that was not tested",
        ]
    ]


class RuntimeDocument(TypedDict):
    """Exactly what ran; empty where that is unknown."""

    name: NotRequired[str]
    package: NotRequired[str]
    version: NotRequired[str]
    resolver: NotRequired[str]
    threads: NotRequired[int]
    python: NotRequired[str]
    numpy: NotRequired[str]
    platform: NotRequired[Annotated[str, "operating system and CPU architecture"]]
    cpu: NotRequired[Annotated[str, "the processor as its system names it; empty: unknown"]]
    vectors: NotRequired[Annotated[str, "the widest vector extension of the processor; empty: unknown"]]
    first_level_cache: NotRequired[Annotated[int, "bytes of the first-level data cache; 0: unknown"]]
    delegate: NotRequired[str]
    delegated: NotRequired[
        Annotated[list[int], "the delegate's partitions in each model that was run: as it is, then observed"]
    ]


class InputsDocument(TypedDict):
    """A generator and its seed, or where the inputs came from."""

    source: str
    seed: int | None
    samples: int


class RecordedInputsDocument(InputsDocument):
    """Inputs of a manifest, which may have further keys."""


class ToleranceDocument(TypedDict):
    operator: Annotated[str, "a name, an index, or * for all"]
    steps: Annotated[Count, "LSB, or ULP of floats"]
    reason: Annotated[str, ("minLength", 1)]
    expires: Annotated[str, "the last day on which it holds", ("format", "date")]


class UnwrittenDocument(TypedDict):
    signature: str | None
    tensor: Count
