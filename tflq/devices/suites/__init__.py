"""Compare a device, a compiler or a release with a profile: suites, targets, verdicts."""

from __future__ import annotations
