"""Results as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agreement.certificates import Claim
from agreement.comparing import Result
from agreement.sums import Census


def table(results: Sequence[Result], claim: Claim) -> list[str]:
    """Return one line for each runtime that ran, and one for each that did not."""
    lines = [
        f"{'runtime':25}{'version':42}{'inputs':>7}{'elements':>15}{'different':>11}{'unproved':>10}{'seconds':>9}"
    ]
    for result in results:
        if result.inputs:
            proven, total = result.differs_in(claim.tensors), sum(result.differing.values())
            is_claimed = claim.names(result.device.name) and not result.device.reports_only
            word = f"{proven:,}" if is_claimed else f"({proven:,})"
            lines.append(
                f"{result.device.name:25}{result.version:42}{result.inputs:>7,}{result.compared:>15,}{word:>11}"
                f"{total - proven:>10,}{result.seconds:>9.1f}"
            )
    lines += [f"not run: {r.device.name}: {r.problem}" for r in results if r.problem and not r.inputs]
    return lines + [f"stopped: {r.device.name}: {r.problem}" for r in results if r.problem and r.inputs]


def thresholds(census: Census) -> str:
    """Return one line about the accumulators next to thresholds."""
    counts = census.counted.values()
    every, near = sum(c[0] for c in counts), sum(c[1] for c in counts)
    if not every:
        return "no accumulators: no product with constant weights"
    least = min(census.counted, key=lambda index: census.counted[index][1])
    return (
        f"{near:,} of {every:,} accumulators of {len(census.products)} products at a threshold "
        f"({census.inputs:,} inputs); fewest in operator {least}: {census.counted[least][1]:,}"
    )


def document(results: Sequence[Result], census: Census, claim: Claim) -> dict[str, Any]:
    """Return everything as JSON values."""
    return {
        "proved_tensors": sorted(claim.tensors),
        "accumulators": {
            str(p.index): {
                "operator": p.name,
                "all": census.counted[p.index][0],
                "at_threshold": census.counted[p.index][1],
            }
            for p in census.products
        },
        "runtimes": [
            {
                "runtime": r.device.name,
                "version": r.version,
                "problem": r.problem or None,
                "float_inside": r.device.reports_only,
                "claimed": claim.names(r.device.name) and not r.device.reports_only,
                "inputs": r.inputs,
                "elements": r.compared,
                "different_by_tensor": {str(tensor): count for tensor, count in sorted(r.differing.items())},
                "first_difference": r.first,
                "seconds": round(r.seconds, 2),
            }
            for r in results
        ],
    }
