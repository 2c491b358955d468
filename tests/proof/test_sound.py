"""Operators that were once called equal, though inputs existed that tell the profiles apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tflq
from opfuzz.case import Case
from opfuzz.one_operator import T
from tflq.errors import OptionError
from tflq.model.flatbuf import read, write
from tflq.model.ir import Model, TensorType
from tflq.proof import ProfileVerdict, Word, prove
from tflq.proof.codes import _with_both_sums, join, kinds, rounds_for, show

Shape = tuple[int, ...]


def verdict(model: bytes | Model, first: str = "litert-ref", second: str = "litert-opt") -> ProfileVerdict:
    """The only verdict on a model of one operator."""
    (operator,) = prove(model, [first, second]).operators
    (found,) = operator.verdicts
    return found


def assert_shown(case: Case, second: str = "litert-opt") -> None:
    """The two differ, on an input whose outputs differ when the interpreter runs it."""
    found = verdict(case.model(), "litert-ref", second)
    assert found.word == Word.DIFFERS, found.reason
    assert found.witness is not None
    outputs = []
    for profile in ("litert-ref", second):
        interpreter = tflq.Interpreter(model_content=case.model(), profile=profile)
        interpreter.allocate_tensors()
        for tensor, value in found.witness.inputs.items():
            interpreter.set_tensor(tensor, value)
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    assert np.count_nonzero(outputs[0] != outputs[1]) == found.witness.count > 0


def convolution(taps: list[int], image: Shape, kernel: Shape, dilation: int = 1, channels: int = 1) -> Case:
    """A convolution of int8 with SAME padding, whose sums below zero meet ties of 2**-3."""
    weights = np.tile(np.array(taps, np.int8), (channels, 1)).reshape(channels, *kernel, 1)
    options = {"padding": 0, "stride_h": 1, "stride_w": 1, "fused_activation_function": 0}
    options |= {"dilation_h_factor": dilation, "dilation_w_factor": dilation}
    return Case(
        "CONV_2D",
        (
            T("int8", (1, *image, 1), 2.0**-5, 0),
            T("int8", weights.shape, 2.0**-3, 0, value=weights),
            T("int32", (channels,), 2.0**-8, 0, value=np.zeros(channels)),
        ),
        (T("int8", (1, *image, channels), 2.0**-5, 0),),
        (),
        ("Conv2DOptions", options),
        3,
    )


@pytest.mark.parametrize(
    ("taps", "image", "kernel", "dilation"),
    [
        ([1, 0, 0], (2, 1), (3, 1), 1),  # seen at the second place only, which sees as many taps as the first
        ([1, 0, 0], (1, 2), (1, 3), 1),
        ([1, 0, 0, 0, 0], (3, 1), (5, 1), 1),
        ([0, 0, 1], (3, 1), (3, 1), 2),  # the middle place sees the middle tap only
        ([1, 0, 0, 0, 0, 0, 0, 0, 0], (2, 2), (3, 3), 1),
    ],
)
def test_every_place_of_an_image_smaller_than_the_window(
    taps: list[int], image: Shape, kernel: Shape, dilation: int
) -> None:
    assert_shown(convolution(taps, image, kernel, dilation))


def test_a_tap_that_no_place_sees_proves_nothing() -> None:
    """Weights of multiples of 8 meet no tie; the other tap lies beyond the image everywhere."""
    found = verdict(convolution([1, 8, 8], (1, 1), (3, 1), 1).model())
    assert (found.word, found.reason[:8]) == (Word.EQUAL, "no input")


@pytest.mark.parametrize("times", [1, 2])
def test_every_place_of_a_depthwise_window(times: int) -> None:
    plain = convolution([1, 0, 0], (2, 1), (3, 1), channels=times)
    x, w, bias = plain.inputs
    assert x is not None and w is not None  # noqa: PT018
    w = replace(w, shape=(1, 3, 1, times), value=np.array([1, 0, 0], np.int8).repeat(times).reshape(1, 3, 1, times))
    assert plain.options is not None
    options = ("DepthwiseConv2DOptions", {**plain.options[1], "depth_multiplier": times})
    assert_shown(replace(plain, op="DEPTHWISE_CONV_2D", inputs=(x, w, bias), options=options), "litert-xnnpack")


@pytest.mark.slow
@pytest.mark.parametrize(("count", "seed"), [(64, 0), (64, 6), (128, 1), (128, 4)])
def test_every_constant_of_16_bits_meets_every_code(count: int, seed: int) -> None:
    """Each place has its own constant, so each place has to see all codes."""
    rng = np.random.default_rng(seed)
    x, w, y = (float(2.0 ** rng.uniform(-12, -8)) for _ in range(3))
    operands = T("int16", (count,), x, 0), T("int16", (count,), w, 0, value=rng.integers(-(2**15), 2**15, count))
    assert_shown(Case("ADD", operands, (T("int16", (count,), y, 0),), (), ("AddOptions", {}), 2))


def mean(shape: Shape, scale: float) -> Case:
    """MEAN over the pixels of an image whose codes are not negative."""
    x, axes = T("int8", shape, scale, -128), T("int32", (2,), value=[1, 2])
    y = T("int8", (shape[0], 1, 1, shape[3]), 2.0**-4, -128)
    return Case("MEAN", (x, axes), (y,), (), ("ReducerOptions", {"keep_dims": True}), 2)


@pytest.mark.parametrize(
    ("shape", "scale"),
    [
        ((8, 2, 2, 20), 2.0**-10),
        ((32, 1, 3, 17), 3 * 2.0**-11),
        ((32, 1, 2, 17), 2.0**-11),
        ((32, 1, 2, 17), 5 * 2.0**-10),
        ((16, 1, 2, 18), 7 * 2.0**-11),
    ],
)
def test_channels_left_over_in_every_row(shape: Shape, scale: float) -> None:
    """The outputs are a multiple of 32: nothing is left over at their end, only at the end of each row."""
    assert_shown(mean(shape, scale))


@pytest.mark.parametrize("shape", [(5,), (2, 33), (3, 4, 20), (1, 7, 48), (2, 3, 5, 7), ()])
def test_places_of_one_kind_lie_alike_in_all_runs(shape: Shape) -> None:
    labels = kinds(shape)
    for axis in range(len(shape)):
        run = int(np.prod(shape[axis:]))
        for block in (4, 8, 16, 32):
            left_over = np.arange(labels.size) % run >= run // block * block
            for kind in np.unique(labels):
                assert len(set(left_over[labels == kind].tolist())) == 1


def test_every_label_shows_every_number() -> None:
    labels = join([np.array([0, 0, 1, 0, 1, 2]), np.array([5, 5, 5, 7, 5, 5])])
    fed = np.array(list(show(labels, 11)))
    assert len(fed) == rounds_for(labels, 11) == 11
    for label in np.unique(labels):
        assert set(fed[:, labels == label].reshape(-1).tolist()) == set(range(11))


@pytest.mark.parametrize("terms", [1, 2, 5])
def test_both_sums_take_every_pair(terms: int) -> None:
    count = (terms + 1) * (127 * terms + 1)
    codes = _with_both_sums(np.arange(count), terms)
    assert codes.min() >= -128
    assert codes.max() <= 127
    pairs = {(int(s), int(n)) for s, n in zip(codes.sum(axis=0), (codes < 0).sum(axis=0), strict=True)}
    assert len(pairs) == count
    assert all(-128 * n <= s <= -n + 127 * (terms - n) for s, n in pairs)


def test_operators_of_other_subgraphs_are_decided() -> None:
    """An operator that differs in a second subgraph is a difference of the model."""
    main, other = (read(c.model()) for c in (mean((1, 2, 2, 4), 2.0**-4), convolution([1], (2, 1), (1, 1))))
    buffers = (*main.buffers, *other.buffers)
    moved = tuple(replace(t, buffer=t.buffer + len(main.buffers)) for t in other.subgraphs[0].tensors)
    operator = replace(other.subgraphs[0].operators[0], opcode_index=1)
    graph = replace(other.subgraphs[0], tensors=moved, operators=(operator,), name="second")
    joint = replace(
        main,
        buffers=buffers,
        subgraphs=(main.subgraphs[0], graph),
        operator_codes=(*main.operator_codes, *other.operator_codes),
    )
    proof = prove(write(joint), ["litert-ref", "litert-opt"])
    assert [o.place for o in proof.operators] == ["0", "1:0"]
    assert proof.operators[1].verdicts[0].word == proof.word == Word.DIFFERS


def test_constants_that_an_operator_overwrites_are_not_proved_with() -> None:
    """The second operator's weights are data in the file, and the first operator's result in the model."""
    model = read(convolution([8], (2, 1), (1, 1)).model())
    graph = model.subgraphs[0]
    (conv,) = graph.operators
    copied = len(graph.tensors)
    weights = graph.tensors[conv.inputs[1]]
    source = replace(weights, name="given", buffer=0)
    relu = replace(conv, opcode_index=1, inputs=(copied,), outputs=(conv.inputs[1],), options=None)
    changed = replace(graph, tensors=(*graph.tensors, source), inputs=(*graph.inputs, copied), operators=(relu, conv))
    code = replace(model.operator_codes[0], builtin_code=19, name="RELU", version=2)
    proof = prove(
        replace(model, subgraphs=(changed,), operator_codes=(*model.operator_codes, code)), ["litert-ref", "litert-opt"]
    )
    assert proof.operators[1].verdicts[0].word == Word.UNDECIDED
    assert verdict(model).word == Word.EQUAL


def test_operators_without_inputs_or_elements_are_run_once() -> None:
    fed = T("int8", (0, 3), 0.5, 0)
    case = Case("ADD", (fed, fed), (T("int8", (0, 3), 0.25, 0),), (), ("AddOptions", {}), 2)
    assert verdict(case.model(), "litert-ref", "litert-xnnpack").word != Word.DIFFERS


def test_equality_on_one_libm_is_said() -> None:
    """Exponentials come from a libm, which is the runtime's own."""
    x = T("float32", (4,))
    found = verdict(Case("EXP", (x,), (x,), (), ("ExpOptions", {})).model(), "litert-ref", "tflite-2.14-ref")
    assert found.word == Word.EQUAL
    assert found.reason.endswith(", on the same libm")
    assert not verdict(convolution([8], (2, 1), (1, 1)).model()).reason.endswith("libm")


@pytest.mark.parametrize("profiles", [[], ["litert-ref"]])
def test_fewer_than_two_profiles_prove_nothing(profiles: list[str]) -> None:
    with pytest.raises(OptionError, match="at least two"):
        prove(mean((1, 2, 2, 4), 2.0**-4).model(), profiles)


@pytest.mark.parametrize("signature", [None, (-1, 2)])
def test_shapes_that_are_computed_are_not_proved(signature: Shape | None) -> None:
    """A fed shape makes RESHAPE's output any shape; the ADD after it is declared with one."""
    x = T("int8", (4,), 0.5, 0)
    model = read(Case("ADD", (x, x), (T("int8", (4,), 0.25, 0),), (), ("AddOptions", {}), 2).model())
    (graph,) = model.subgraphs
    (add,) = graph.operators
    count = len(graph.tensors)
    shape = replace(graph.tensors[0], name="shape", type=TensorType.INT32, shape=(1,), quantization=None)
    moved = replace(graph.tensors[0], name="moved", shape_signature=signature)
    reshape = replace(add, opcode_index=1, inputs=(0, count), outputs=(count + 1,), options=None)
    changed = replace(
        graph,
        tensors=(*graph.tensors, shape, moved),
        inputs=(*graph.inputs, count),
        operators=(reshape, replace(add, inputs=(count + 1, 1))),
    )
    codes = (*model.operator_codes, replace(model.operator_codes[0], builtin_code=22, name="RESHAPE", version=1))
    proof = prove(replace(model, subgraphs=(changed,), operator_codes=codes), ["litert-ref", "litert-xnnpack"])
    verdicts = [operator.verdicts[0] for operator in proof.operators]
    assert [v.word for v in verdicts] == [Word.UNDECIDED, Word.UNDECIDED]
    assert verdicts[1].reason == "its shapes are known only when it runs"
