"""Tables of kernels: every operator has a room with rows, and the narrowest valid row wins."""

from __future__ import annotations

import pytest

from support.each import each
from tflq.engine.kernels.delegation import has_only
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.kernel import valid
from tflq.engine.kernels.leaky_relu import ROWS
from tflq.engine.kernels.table import table
from tflq.engine.kernels.tables.rows import modules_of, rows_of, table_of
from tflq.engine.kernels.validity import (
    RELEASES,
    XNNPACK,
    RuntimeConditions,
    When,
    micro,
    opt,
    ref,
    spec,
    tflite,
    xnnpack,
)
from tflq.engine.profiles import PROFILES
from tflq.model.ir import TensorType

REFERENCE = table_of(RuntimeConditions())
DELEGATE = table_of(RuntimeConditions(resolver=XNNPACK))


@each("op", OPERATORS)
def test_every_operator_has_rows_in_its_room(op: str) -> None:
    assert rows_of(op)
    assert (DELEGATE if OPERATORS[op].delegated else REFERENCE)[op]
    assert (op in REFERENCE) != bool(OPERATORS[op].delegated)


def test_a_module_of_xnnpack_s_rows_has_no_others() -> None:
    runtimes = {profile.runtime for profile in PROFILES.values()}
    for op in OPERATORS:
        for module in modules_of(op):
            if module.__name__.endswith("_xnnpack"):
                rows = getattr(module, "KERNELS", ())
                assert all(xnnpack().holds(runtime) for row in rows for runtime in runtimes if row.when.holds(runtime))


def test_an_unknown_operator_is_a_key_error() -> None:
    assert "NO_SUCH" not in REFERENCE
    with pytest.raises(KeyError):
        REFERENCE["NO_SUCH"]


def test_two_rows_with_the_same_types_are_refused() -> None:
    with pytest.raises(ValueError, match="two kernels for LEAKY_RELU"):
        table(ROWS, ROWS)


def test_an_overlay_puts_its_rows_first_and_leaves_operators_out() -> None:
    ours = table(ROWS[:1])
    over = REFERENCE.overlaid(ours).only(lambda op: op != "ADD")
    assert over["LEAKY_RELU"] == ROWS
    assert over["SUB"] == REFERENCE["SUB"]
    assert "ADD" not in over
    assert len(over) == len(REFERENCE) - 1


def test_conditions_hold_inside_their_releases_only() -> None:
    when = opt("tflite-2.9", "tflite-2.12")
    held = [release for release in RELEASES if when.holds(RuntimeConditions(release, "opt"))]
    assert held == ["tflite-2.9", "tflite-2.11", "tflite-2.12"]
    assert not when.holds(RuntimeConditions("tflite-2.9", "ref"))
    assert when.holds(RuntimeConditions("tflite-2.9", "xnnpack"))
    assert not xnnpack().holds(RuntimeConditions(resolver="opt"))
    assert not tflite().holds(RuntimeConditions("tf-1.15"))
    assert tflite(cpu="arm64").holds(RuntimeConditions(cpu="arm64-a53"))
    assert not tflite(cpu="arm64-a53").holds(RuntimeConditions(cpu="arm64"))
    with pytest.raises(ValueError, match="no release"):
        tflite("litert-2.0", "tflite-2.14")


@pytest.mark.parametrize(
    ("wider", "narrower"),
    [
        (When(), tflite()),
        (tflite(), ref()),
        (tflite(), tflite(cpu="arm64")),
        (opt(), tflite(until="litert-2.0")),
        (opt(until="tflite-2.14"), opt(until="tflite-2.14", cpu="arm64")),
        (tflite(until="tflite-2.9"), opt(vectors=True)),
        (micro(), spec()),
    ],
)
def test_the_narrower_condition_wins(wider: When, narrower: When) -> None:
    assert narrower.precedence > wider.precedence
    rows = (*valid(wider, *ROWS), *valid(narrower, *ROWS))
    assert max(rows, key=lambda row: row.when.precedence).when == narrower


def test_half_floats_of_xnnpack_are_never_promised() -> None:
    table = PROFILES["litert-xnnpack"].kernels
    rows = [
        row for op in ("ADD", "MUL", "TANH", "SIN", "GELU") for row in table[op] if has_only(row, TensorType.FLOAT16)
    ]
    assert len(rows) == 5
    assert {row.exactness.word for row in rows} == {"close"}
