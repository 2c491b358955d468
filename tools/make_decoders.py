"""Make small decoders with two signatures and a key-value cache, into golden/models/.

Weights are seeded random numbers: the models are for tests of signatures, steps and generation, not for text. Each has
signatures `prefill_8` and `decode`: a pre-norm transformer of two layers on bytes below 128, with learned positions,
RMSNorm, masked attention over a cache of 32 positions, and a gated feed-forward block. tiny_decoder_float has float32
weights, tiny_decoder_int8 int8 weights in FULLY_CONNECTED (dynamic range, per channel). Needs nothing beyond tflq; a
provenance file names seed and SHA-256.

    python tools/make_decoders.py
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tflq
from tflq.model.ir import (
    Buffer,
    Model,
    Operator,
    OperatorCode,
    Quantization,
    Record,
    SignatureDef,
    Subgraph,
    TensorSpec,
    TensorType,
)
from tflq.model.ir.model import enum

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "models"
SEED = 20261101
VOCABULARY, WIDTH, LAYERS, HEADS, CACHE, HIDDEN = 128, 32, 2, 2, 32, 64
DEPTH = WIDTH // HEADS
#: Value that masks a position out, and the epsilon of RMSNorm.
MASKED, EPSILON = -1e9, 1e-6
#: Operators by the version that their operands need; others are of version 1.
VERSIONS = {"FULLY_CONNECTED": 5, "SELECT_V2": 1}
#: Options tables by operator.
TABLES = {
    "ADD": "AddOptions",
    "MUL": "MulOptions",
    "BATCH_MATMUL": "BatchMatMulOptions",
    "CONCATENATION": "ConcatenationOptions",
    "FULLY_CONNECTED": "FullyConnectedOptions",
    "GATHER": "GatherOptions",
    "MEAN": "ReducerOptions",
    "SOFTMAX": "SoftmaxOptions",
}


class Weights:
    """Arrays shared by both signatures, each in one buffer: value, and scales of int8 rows or None."""

    def __init__(self, quantized: bool) -> None:
        self._random, self._quantized = np.random.default_rng(SEED), quantized
        self.buffers = [Buffer()]
        self.known: dict[str, tuple[np.ndarray, np.ndarray | None, int]] = {}

    def get(self, name: str, value: Any) -> tuple[np.ndarray, np.ndarray | None, int]:
        """Return a constant of that name, added at the first request: value, scales, buffer."""
        if name not in self.known:
            self.known[name] = (*self._coded(name, np.asarray(value)), len(self.buffers))
            data = np.ascontiguousarray(self.known[name][0]).reshape(-1).view(np.uint8)
            self.buffers.append(Buffer(data))
        return self.known[name]

    def normal(self, name: str, *shape: int) -> tuple[np.ndarray, np.ndarray | None, int]:
        """Return a matrix of normal numbers, of unit variance after a product."""
        if name in self.known:
            return self.known[name]
        return self.get(name, self._random.normal(0, 1 / np.sqrt(shape[-1]), shape).astype(np.float32))

    def _coded(self, name: str, value: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        if not (self._quantized and name.endswith("/dense")):
            return value, None
        scales = (np.abs(value).max(1) / np.float32(127)).astype(np.float32)
        return np.clip(np.rint(value / scales[:, None]), -127, 127).astype(np.int8), scales


class Graph:
    """One signature's subgraph while it is drawn. Tensors are numbers."""

    def __init__(self, name: str, weights: Weights, codes: list[OperatorCode]) -> None:
        self.name, self.weights, self.codes = name, weights, codes
        self.tensors: list[TensorSpec] = []
        self.operators: list[Operator] = []
        self.inputs: dict[str, int] = {}
        self.outputs: dict[str, int] = {}
        self._constants: dict[str, int] = {}

    def given(self, name: str, type_: TensorType, *shape: int) -> int:
        """Add an input."""
        self.inputs[name] = self._tensor(f"{self.name}_{name}", type_, shape)
        return self.inputs[name]

    def constant(self, name: str, value: Any) -> int:
        """Return a constant."""
        if name not in self._constants:
            self._constants[name] = self._stored(name, *self.weights.get(name, value))
        return self._constants[name]

    def integers(self, *values: int) -> int:
        """Return a constant list of int32."""
        return self.constant(f"integers{list(values)}", np.array(values, np.int32))

    def matrix(self, name: str, *shape: int) -> int:
        """Return seeded weights."""
        if name not in self._constants:
            self._constants[name] = self._stored(name, *self.weights.normal(name, *shape))
        return self._constants[name]

    def op(
        self,
        name: str,
        inputs: Sequence[int],
        shape: Sequence[int],
        type_: TensorType = TensorType.FLOAT32,
        **options: Any,
    ) -> int:
        """Append an operator; return its output."""
        code = OperatorCode(enum("BuiltinOperator")[name], name, VERSIONS.get(name, 1))
        if code not in self.codes:
            self.codes.append(code)
        output = self._tensor(f"{self.name}/{name.lower()}_{len(self.operators)}", type_, shape)
        record = Record(TABLES[name], options) if name in TABLES else None
        self.operators.append(Operator(self.codes.index(code), tuple(inputs), (output,), record))
        return output

    def shape(self, tensor: int) -> tuple[int, ...]:
        """Return a tensor's shape."""
        return self.tensors[tensor].shape

    def subgraph(self) -> Subgraph:
        """Return the finished subgraph."""
        sides = tuple(self.inputs.values()), tuple(self.outputs.values())
        return Subgraph(tuple(self.tensors), *sides, tuple(self.operators), self.name)

    def signature(self, index: int) -> SignatureDef:
        """Return the names of its inputs and outputs, in alphabetical order."""
        return SignatureDef(self.name, *(tuple(sorted(d.items())) for d in (self.inputs, self.outputs)), index)

    def _stored(self, name: str, value: np.ndarray, scales: np.ndarray | None, buffer: int) -> int:
        quantization = None if scales is None else Quantization(scales, np.zeros(len(scales), np.int64), 0)
        type_ = TensorType[value.dtype.name.upper()]
        return self._tensor(name, type_, value.shape, buffer, quantization)

    def _tensor(
        self,
        name: str,
        type_: TensorType,
        shape: Sequence[int],
        buffer: int = 0,
        quantization: Quantization | None = None,
    ) -> int:
        self.tensors.append(TensorSpec(name, type_, tuple(shape), buffer, quantization))
        return len(self.tensors) - 1


def add(g: Graph, a: int, b: int) -> int:
    """Return a + b, of a's shape."""
    return g.op("ADD", (a, b), g.shape(a), fused_activation_function=0, pot_scale_int16=True)


def mul(g: Graph, a: int, b: int) -> int:
    """Return a * b, of a's shape."""
    return g.op("MUL", (a, b), g.shape(a), fused_activation_function=0)


def dense(g: Graph, x: int, name: str, channels: int) -> int:
    """Return x times a matrix of weights."""
    rows, width = g.shape(x)
    weights = g.matrix(f"{name}/dense", channels, width)
    options = {"fused_activation_function": 0, "weights_format": 0, "keep_num_dims": True}
    options |= {"asymmetric_quantize_inputs": False, "quantized_bias_type": 0, "quant_spec": None}
    return g.op("FULLY_CONNECTED", (x, weights, -1), (rows, channels), **options)


def norm(g: Graph, x: int, name: str) -> int:
    """Return x with rows of unit root mean square, times weights."""
    rows, width = g.shape(x)
    mean = g.op("MEAN", (mul(g, x, x), g.integers(-1)), (rows, 1), keep_dims=True)
    scale = g.op("RSQRT", (add(g, mean, g.constant("epsilon", np.float32(EPSILON))),), (rows, 1))
    return mul(g, mul(g, x, scale), g.constant(name, np.linspace(0.8, 1.2, width, dtype=np.float32)))


def mask(g: Graph, positions: int) -> int:
    """Return 0 where a query may look at a position of the cache, else a large negative number: (queries, CACHE)."""
    (count,) = g.shape(positions)
    column = g.op("RESHAPE", (positions, g.integers(count, 1)), (count, 1), TensorType.INT32)
    every = g.constant("every position", np.arange(CACHE, dtype=np.int32)[None])
    seen = g.op("LESS_EQUAL", (every, column), (count, CACHE), TensorType.BOOL)
    zero, masked = g.constant("zero", np.float32(0)), g.constant("masked", np.float32(MASKED))
    return g.op("SELECT_V2", (seen, zero, masked), (count, CACHE))


def start(g: Graph, positions: int) -> int:
    """Return the place of the first position in a cache: int32 (4,)."""
    first = g.op("SLICE", (positions, g.integers(0), g.integers(1)), (1,), TensorType.INT32)
    parts = (g.integers(0), first, g.integers(0, 0))
    return g.op("CONCATENATION", parts, (4,), TensorType.INT32, axis=0, fused_activation_function=0)


def cached(g: Graph, x: int, name: str, place: int) -> int:
    """Return the cache of that name with new rows, which is an input and an output."""
    cache = g.given(name, TensorType.FLOAT32, 1, CACHE, HEADS, DEPTH)
    shape = 1, g.shape(x)[0], HEADS, DEPTH
    rows = g.op("RESHAPE", (x, g.integers(*shape)), shape)
    g.outputs[name] = g.op("DYNAMIC_UPDATE_SLICE", (cache, rows, place), g.shape(cache))
    return g.outputs[name]


def heads(g: Graph, x: int) -> int:
    """Return (1, rows, HEADS, DEPTH) as (1, HEADS, rows, DEPTH)."""
    _, rows, _, _ = g.shape(x)
    return g.op("TRANSPOSE", (x, g.integers(0, 2, 1, 3)), (1, HEADS, rows, DEPTH))


def attention(g: Graph, x: int, keys: int, values: int, seen: int, name: str) -> int:
    """Return scaled dot-product attention of x's queries over the caches."""
    count = g.shape(x)[0]
    shape = 1, count, HEADS, DEPTH
    queries = heads(g, g.op("RESHAPE", (dense(g, x, f"{name}/query", WIDTH), g.integers(*shape)), shape))
    options = {"adj_x": False, "asymmetric_quantize_inputs": False}
    scores = g.op("BATCH_MATMUL", (queries, heads(g, keys)), (1, HEADS, count, CACHE), adj_y=True, **options)
    scaled = mul(g, scores, g.constant("scale", np.float32(1 / np.sqrt(DEPTH))))
    shares = g.op("SOFTMAX", (add(g, scaled, seen),), (1, HEADS, count, CACHE), beta=1.0)
    mixed = g.op("BATCH_MATMUL", (shares, heads(g, values)), (1, HEADS, count, DEPTH), adj_y=False, **options)
    rows = g.op("TRANSPOSE", (mixed, g.integers(0, 2, 1, 3)), shape)
    flat = g.op("RESHAPE", (rows, g.integers(count, WIDTH)), (count, WIDTH))
    return dense(g, flat, f"{name}/output", WIDTH)


def feed_forward(g: Graph, x: int, name: str) -> int:
    """Return the gated block: (up * swish(gate)) down."""
    gate, up = dense(g, x, f"{name}/gate", HIDDEN), dense(g, x, f"{name}/up", HIDDEN)
    swish = mul(g, gate, g.op("LOGISTIC", (gate,), g.shape(gate)))
    return dense(g, mul(g, up, swish), f"{name}/down", WIDTH)


def decoder(name: str, count: int, weights: Weights, codes: list[OperatorCode], *, logits: bool) -> Graph:
    """Return the graph for `count` tokens. Without logits it fills the caches only."""
    g = Graph(name, weights, codes)
    tokens = g.given("tokens", TensorType.INT32, 1, count)
    positions = g.given("input_pos", TensorType.INT32, count)
    flat = g.op("RESHAPE", (tokens, g.integers(count)), (count,), TensorType.INT32)
    embedded = g.op("EMBEDDING_LOOKUP", (flat, g.matrix("tokens", VOCABULARY, WIDTH)), (count, WIDTH))
    table = g.matrix("positions", CACHE, WIDTH)
    x = add(g, embedded, g.op("GATHER", (table, positions), (count, WIDTH), axis=0, batch_dims=0))
    seen, place = mask(g, positions), start(g, positions)
    for layer in range(LAYERS):
        normed = norm(g, x, f"layer{layer}/attention/norm")
        keys, values = (
            cached(g, dense(g, normed, f"layer{layer}/{kind}", WIDTH), f"kv_cache_{kind[0]}_{layer}", place)
            for kind in ("key", "value")
        )
        if layer == LAYERS - 1 and not logits:
            return g
        x = add(g, x, attention(g, normed, keys, values, seen, f"layer{layer}"))
        x = add(g, x, feed_forward(g, norm(g, x, f"layer{layer}/feed_forward/norm"), f"layer{layer}"))
    last = dense(g, norm(g, x, "norm"), "logits", VOCABULARY)
    shape = 1, count, VOCABULARY
    g.outputs["logits"] = g.op("RESHAPE", (last, g.integers(*shape)), shape)
    return g


def model(*, quantized: bool) -> Model:
    """Return a decoder with signatures prefill_8 and decode."""
    weights, codes = Weights(quantized), list[OperatorCode]()
    graphs = decoder("prefill_8", 8, weights, codes, logits=False), decoder("decode", 1, weights, codes, logits=True)
    return Model(
        version=3,
        operator_codes=tuple(codes),
        subgraphs=tuple(g.subgraph() for g in graphs),
        buffers=tuple(weights.buffers),
        description="a tiny decoder with seeded weights",
        signature_defs=tuple(g.signature(index) for index, g in enumerate(graphs)),
    )


def main() -> None:
    """Write both models and their provenance."""
    digests: dict[str, str] = {}
    for kind, quantized in (("float", False), ("int8", True)):
        path = GOLDEN / f"tiny_decoder_{kind}.tflite"
        data = tflq.save(model(quantized=quantized))
        path.write_bytes(data)
        digests[path.name] = hashlib.sha256(data).hexdigest()
        print(f"{path.name}: {len(data):,} bytes")
    facts: Mapping[str, Any] = {"made_by": "tools/make_decoders.py", "seed": SEED, "sha256": digests}
    (GOLDEN / "tiny_decoder.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
