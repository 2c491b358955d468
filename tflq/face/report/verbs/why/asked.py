"""The question to `tflq why`, and commands that ask it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_RUNTIME = "runtime:"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: the path of a model, and the evidence.

    `evidence` is the path of a file, runtime:NAME, or a target's command, if `is_target`. `options` are further words
    of the command.
    """

    model: str = "MODEL"
    evidence: str = "EVIDENCE"
    is_target: bool = False
    options: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that asks again."""
        words = ("--target", self.evidence) if self.is_target else (self.evidence,)
        return shlex.join(("tflq", "why", self.model, *words, *self.options))

    @property
    def stem(self) -> str:
        """The model's name without its suffix."""
        return Path(self.model).stem

    @property
    def dump(self) -> str:
        """The path of the evidence as a dump; where a runtime is asked, of the one that `recording` writes."""
        if self.evidence.startswith(_RUNTIME) and not self.is_target:
            return f"{self.stem}-{self.evidence.removeprefix(_RUNTIME)}.npz"
        return self.evidence

    def on_dump(self, verb: str, *options: str) -> Iterator[str]:
        """Yield the commands that run a verb on the evidence as a dump; none for a target, which leaves no file."""
        if self.is_target:
            return
        if self.dump != self.evidence:
            name = self.evidence.removeprefix(_RUNTIME)
            yield shlex.join(("tflq", "record", self.model, "--against", name, "--all-tensors", "-o", self.dump))
        yield shlex.join(("tflq", verb, self.model, "--dump", self.dump, *self.options, *options))

    def without_folders(self) -> Asked:
        """Return the question with names of files only, for readers elsewhere."""
        evidence = self.evidence if self.is_target else Path(self.evidence).name
        return Asked(Path(self.model).name, evidence, self.is_target, self.options)
