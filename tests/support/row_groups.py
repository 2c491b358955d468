"""Rows of kernels in groups, and runs of models that reach the rows of a group under one of their profiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType

from support.kernel_runs import RESOLVERS
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.tables.rows import modules_of
from tflq.engine.kernels.validity import When
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.profiles import PROFILES, Profile


@dataclass(frozen=True)
class Group:
    """The rows of one module and operator that are valid in the same places."""

    module: str
    op: str
    when: When
    rows: tuple[Kernel, ...]

    @property
    def label(self) -> str:
        name = self.module.removeprefix("tflq.engine.kernels.")
        when = "-".join([*self.when.resolvers, self.when.since, self.when.until, *self.when.cpus])
        return f"{name}-{self.op}-{when}"

    def holds(self, row: Kernel) -> bool:
        """Return whether a row of a profile's table is one of the group's, narrowed or wrapped as it may be."""
        return row.op == self.op and any(
            row.prepare is ours.prepare or (row.when == self.when and row.signature == ours.signature)
            for ours in self.rows
        )

    def profile(self) -> str:
        """The first profile, live ones first, that has rows of the group; empty if none has."""
        names = (*RESOLVERS, *PROFILES)
        valid = (name for name in names if self.when.holds(PROFILES[name].runtime))
        return next((name for name in valid if any(map(self.holds, PROFILES[name].kernels.get(self.op, ())))), "")

    def watched(self, profile: Profile) -> tuple[Profile, list[Node]]:
        """The profile, and the nodes that rows of the group prepared under it, once it has run."""
        reached: list[Node] = []

        def watch(row: Kernel) -> Kernel:
            if not self.holds(row):
                return row

            def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
                if row.takes is None or row.takes(node):
                    reached.append(node)
                return row.prepare(node, arithmetic)

            return replace(row, prepare=prepare)

        return profile.within(lambda table: table.each(watch)), reached


@cache
def groups() -> tuple[Group, ...]:
    """Every group of every room."""
    modules = dict.fromkeys(module for op in OPERATORS for module in modules_of(op))
    return tuple(group for module in sorted(modules, key=lambda m: m.__name__) for group in _groups_in(module))


def _groups_in(module: ModuleType) -> Iterator[Group]:
    rows: tuple[Kernel, ...] = getattr(module, "KERNELS", ())
    for op, when in dict.fromkeys((row.op, row.when) for row in rows):
        yield Group(module.__name__, op, when, tuple(row for row in rows if (row.op, row.when) == (op, when)))
