"""Filters in other orders of their axes, each element's place worked out by hand."""

from __future__ import annotations

from itertools import product

import numpy as np

from tflq.diagnosis.mistakes.tensors import wrong_orders


def test_every_order_moves_each_element_to_where_its_name_says() -> None:
    o, h, w, i = shape = (2, 3, 3, 4)
    value = np.arange(o * h * w * i, dtype=np.uint8).reshape(shape)
    orders = dict(wrong_orders(value, "OHWI"))
    memory = value.reshape(-1).tolist()
    for a, b, c, d in product(range(o), range(h), range(w), range(i)):
        assert orders["read as HWIO"][a, b, c, d] == memory[((b * w + c) * i + d) * o + a]
        assert orders["read as OIHW"][a, b, c, d] == memory[((a * i + d) * h + b) * w + c]
        written = orders["stored as OIHW"].reshape(-1)
        assert written[((a * i + d) * h + b) * w + c] == value[a, b, c, d]
        assert orders["rotated by half a turn"][a, b, c, d] == value[a, h - 1 - b, w - 1 - c, d]
        assert orders["mirrored along W"][a, b, c, d] == value[a, b, w - 1 - c, d]


def test_orders_that_change_nothing_or_the_same_are_given_once() -> None:
    value = np.arange(12, dtype=np.int8).reshape(3, 4)
    found = [changed.tobytes() for _, changed in wrong_orders(value, "OI")]
    assert len(set(found)) == len(found) == 2  # read and stored as IO
    assert value.tobytes() not in found
    assert not list(wrong_orders(np.zeros((3, 4), np.int8), "OI"))
