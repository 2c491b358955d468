"""Roots: which subgraphs callers run, and models rooted at them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tflq
from support import suites
from tflq.errors import InputError, ModelError, UnknownNameError
from tflq.model.ir import Model, Root, SignatureDef, choose_roots, input_names, output_names, rooted, roots, view
from tflq.model.ir.signatures import call, is_plain, only_root, original_index, reach

DECODER = suites.ROOT / "golden" / "models" / "tiny_decoder_int8.tflite"
DIGITS = suites.ROOT / "golden" / "models" / "digits_lstm_int8.tflite"


@pytest.fixture(scope="module")
def decoder() -> Model:
    return tflq.load(DECODER)


def signed(model: Model, *signatures: SignatureDef) -> Model:
    return replace(model, signature_defs=signatures)


def test_every_signature_is_a_root(decoder: Model) -> None:
    assert roots(decoder) == (Root("prefill_8", 0), Root("decode", 1))
    assert not is_plain(decoder)
    assert [str(root) for root in roots(decoder)] == ["prefill_8", "decode"]


def test_a_model_without_signatures_has_its_first_subgraph() -> None:
    model = replace(tflq.load(DIGITS), signature_defs=None)
    assert roots(model) == (Root(None, 0),)
    assert is_plain(model)
    assert rooted(model, Root(None, 0)).subgraphs == model.subgraphs
    assert str(Root(None, 0)) == "subgraph 0"


def test_a_first_subgraph_that_no_signature_runs_is_a_root(decoder: Model) -> None:
    decode = (decoder.signature_defs or ())[1]
    assert roots(signed(decoder, decode)) == (Root(None, 0), Root("decode", 1))


def test_a_rooted_model_has_the_signature_first(decoder: Model) -> None:
    decode = rooted(decoder, Root("decode", 1))
    assert view(decode).record is decoder.subgraphs[1]
    assert decode.subgraphs[1] is decoder.subgraphs[0]
    (signature,) = decode.signature_defs or ()
    assert (signature.signature_key, signature.subgraph_index) == ("decode", 0)
    assert roots(decode) == (Root("decode", 0),)
    assert [original_index(Root("decode", 1), k) for k in (0, 1, 2)] == [1, 0, 2]
    assert tflq.load(tflq.save(decode)).subgraphs[0].name == "decode"


def test_names_are_the_signatures_own(decoder: Model) -> None:
    decode = rooted(decoder, Root("decode", 1))
    assert input_names(decode)[:2] == ("tokens", "input_pos")
    assert output_names(decode)[-1] == "logits"
    tensors = tuple(view(decode).tensors[t].name for t in view(decode).inputs)
    assert input_names(replace(decode, signature_defs=None)) == tensors


def test_an_output_that_two_names_share_has_both(decoder: Model) -> None:
    decode = rooted(decoder, Root("decode", 1))
    graph = view(decode)
    logits = graph.outputs[-1]
    twice = replace(decode, subgraphs=(replace(graph.record, outputs=(logits, logits)), *decode.subgraphs[1:]))
    assert output_names(replace(twice, signature_defs=None))[0] != output_names(replace(twice, signature_defs=None))[1]
    both = SignatureDef("decode", (), (("a", logits), ("b", logits)))
    assert output_names(signed(twice, both)) == ("a", "b")


def test_equal_names_are_told_apart(decoder: Model) -> None:
    graph = view(decoder)
    equal = SignatureDef("s", tuple(("x", t) for t in graph.inputs), (), 0)
    names = input_names(signed(decoder, equal))
    assert len(set(names)) == len(graph.inputs)


def test_several_signatures_of_one_subgraph_are_several_roots(decoder: Model) -> None:
    one, _ = decoder.signature_defs or ()
    model = signed(decoder, one, replace(one, signature_key="again"))
    assert roots(model) == (Root("prefill_8", 0), Root("again", 0))
    assert input_names(model) == tuple(view(model).tensors[t].name for t in view(model).inputs)


def test_the_first_of_two_equal_keys_counts(decoder: Model) -> None:
    one, two = decoder.signature_defs or ()
    assert roots(signed(decoder, one, replace(two, signature_key="prefill_8"))) == (Root("prefill_8", 0),)


def test_an_empty_key_is_a_name(decoder: Model) -> None:
    one, two = decoder.signature_defs or ()
    model = signed(decoder, replace(one, signature_key=None), two)
    assert roots(model)[0] == Root("", 0)
    assert choose_roots(model, "") == (Root("", 0),)
    assert str(Root("", 3)) == "subgraph 3"


def test_an_unknown_signature_is_refused_with_the_known_ones(decoder: Model) -> None:
    with pytest.raises(UnknownNameError, match="prefill_8, decode"):
        choose_roots(decoder, "decod")


def test_a_subgraph_out_of_range_is_refused(decoder: Model) -> None:
    one, _ = decoder.signature_defs or ()
    with pytest.raises(ModelError, match="'prefill_8': subgraph index: expected below 2, got 7"):
        roots(signed(decoder, replace(one, subgraph_index=7)))
    with pytest.raises(ModelError, match="no such subgraph"):
        rooted(decoder, Root(None, 9))


def test_one_root_is_asked_for_by_name(decoder: Model) -> None:
    assert only_root(decoder, "decode") == Root("decode", 1)
    with pytest.raises(InputError, match=r"several signatures: choose one .* expected one of prefill_8, decode"):
        only_root(decoder)


@pytest.mark.skipif(bool(suites.missing()), reason=suites.missing())
def test_calls_follow_their_subgraphs() -> None:
    model = tflq.load(suites.SHARED / "suites" / "modern" / "kws_state" / "model.tflite")
    step = rooted(model, Root("step", 1))
    assert reach(model, (0,)) == {0, 2}
    assert reach(step, (1,)) == {1, 2}
    assert [k for operator in model.subgraphs[0].operators for k in call(operator)] == [2]
