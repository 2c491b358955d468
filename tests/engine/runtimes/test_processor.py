"""Facts that CPUID gives of processors, from leaves as their manuals and dumps have them."""

from __future__ import annotations

import pytest

from tflq.engine.runtimes.child import tflq_processor as processor

Leaves = dict[tuple[int, int], processor.Registers]


def leaf_of(vendor: str, leaves: Leaves) -> processor.Leaf:
    b, d, c = (int.from_bytes(vendor[i : i + 4].encode(), "little") for i in (0, 4, 8))
    table = {(0, 0): (13, b, c, d), **leaves}
    return lambda number, sub: table.get((number, sub), (0, 0, 0, 0))


FMA_AVX = (0, 0, 0x10001000, 0)
#: Ice Lake's 12 ways of 64 sets of 64 bytes, behind an instruction cache.
INTEL: Leaves = {(4, 0): (0x22, 0x01C0003F, 63, 0), (4, 1): (0x21, 0x02C0003F, 63, 0), (1, 0): FMA_AVX}
AMD: Leaves = {(0x80000000, 0): (0x80000021, 0, 0, 0), (0x80000005, 0): (0, 0, 0x20080140, 0), (1, 0): FMA_AVX}


@pytest.mark.parametrize(
    ("vendor", "leaves", "expected"),
    [
        ("GenuineIntel", {**INTEL, (7, 0): (0, 0xD0030020, 0x800, 0)}, ("AVX-512 VNNI", 48 << 10)),
        ("GenuineIntel", {**INTEL, (7, 0): (0, 0xD0030020, 0, 0)}, ("AVX-512", 48 << 10)),
        ("GenuineIntel", {**INTEL, (7, 0): (0, 0x00010020, 0, 0)}, ("AVX2", 48 << 10)),
        ("AuthenticAMD", {**AMD, (7, 0): (0, 0x20, 0, 0)}, ("AVX2", 32 << 10)),
        ("AuthenticAMD", {(1, 0): (0, 0, 0x10000000, 0)}, ("AVX", 0)),
        ("GenuineIntel", {(1, 0): (0, 0, 0x80000, 0)}, ("SSE4.1", 0)),
        ("HygonGenuine", {}, ("SSE2", 0)),
    ],
)
def test_processors(vendor: str, leaves: Leaves, expected: tuple[str, int]) -> None:
    said = processor.of_x86(leaf_of(vendor, leaves))
    assert (said["vectors"], said["first_level_cache"]) == expected


def test_this_machine() -> None:
    said = processor.describe()
    assert set(said) == {"vectors", "first_level_cache"}
    assert said["first_level_cache"] % 1024 == 0


def test_where_memory_cannot_hold_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> processor.Leaf:
        raise OSError("no executable memory")

    monkeypatch.setattr(processor, "_leaf", refused)
    monkeypatch.setattr(processor.platform, "machine", lambda: "x86_64")
    assert processor.describe() == {"vectors": "", "first_level_cache": 0}
