"""`tflq run` on the signatures of a model: steps in one interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tflq.comparison.verification.feeding import Feeds
    from tflq.engine.api.subject import Subject
    from tflq.face.report.verbs.run import Ran
    from tflq.model.ir import Signed


def run_signatures(
    target: Subject, parts: Sequence[Signed], options: Mapping[str, Any], *, words: Sequence[str], drawn: bool
) -> Ran:
    """Run steps of the signatures; arrays are named s<step>_SIGNATURE/OUTPUT, SIGNATURE/OUTPUT if there is one step."""
    from tflq.comparison.verification.preparation import preparation
    from tflq.engine.api.steps import Stepper
    from tflq.engine.profiles import by_name
    from tflq.face.report.verbs.run import Ran, Top, top

    how = preparation(options["mean"], options["std"], options["quantize_inputs"], options["bgr"])
    feeds, chosen = _feeds(parts, options, how), by_name(options["profile"])
    arrays: dict[str, Any] = {}
    promises: dict[str, Any] = {}
    texts: list[Top | None] = []
    page: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
    steps = 0
    for sequence in feeds.sequences():
        stepper = Stepper(target.model, chosen)
        for fed in sequence:
            graph, first = (
                target.model.subgraphs[fed.part.root.subgraph],
                drawn and not page[0] and fed.part is parts[0],
            )
            keeps = options["all_tensors"] or first
            result = stepper.run(fed.step(), keep_all=keeps)
            named = {name: (value, result.promises[name]) for name, value in result.outputs.items()}
            if options["all_tensors"]:
                named |= {f"t{t}": (value, result.trace.promise(t)) for t, value in sorted(result.tensors.items())}
            prefix = f"s{steps}_" * (len(feeds.steps) > 1) + f"{fed.part.name}/"
            arrays |= {prefix + name: value for name, (value, _) in named.items()}
            promises |= {prefix + name: promise for name, (_, promise) in named.items()}
            if options["labels"] is not None:
                texts += [top(prefix + n, graph.tensors[t], result.outputs[n], words) for n, t in result.named.items()]
            if first:
                page = dict(result.tensors), {t: result.trace.promise(t) for t in graph.outputs}
            steps += 1
    return Ran(
        target.facts, chosen.name, feeds.facts, arrays, promises, [one for one in texts if one is not None], *page
    )


def _feeds(parts: Sequence[Signed], options: Mapping[str, Any], how: Any) -> Feeds:
    """Return the steps: generated, from a file, or from a file for each input."""
    from dataclasses import replace

    from tflq.comparison.verification.feeding import Fed, Feeds, make_feeds
    from tflq.comparison.verification.inputs import from_files

    if not options["files"]:
        return make_feeds(parts, options["inputs"], options["samples"], options["seed"], how)
    steps, sources = [], []
    for name, files in _by_signature(parts, options["files"]).items():
        part = next(part for part in parts if part.name == name)
        made = from_files(part.model, files, how)
        steps += [Fed(part, sample) for sample in made.samples]
        sources.append(made.facts)
    facts = replace(sources[0], source=", ".join(one.source for one in sources), samples=len(steps))
    return Feeds(facts, tuple(steps))


def _by_signature(parts: Sequence[Signed], words: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return files by input and signature, from words SIGNATURE/INPUT=FILE; one signature needs no name."""
    from tflq.errors import OptionError, UnknownNameError

    names = [part.name for part in parts]
    found: dict[str, dict[str, str]] = {}
    for word in words:
        name, equals, path = word.rpartition("=")
        signature, slash, rest = name.partition("/")
        if not equals:
            raise OptionError(f"--inputs {word}: write {names[0]}/NAME=FILE")
        if len(parts) == 1 and signature != names[0]:
            signature, rest, slash = names[0], name, "/"
        if not slash:
            raise OptionError(f"--inputs {word}: name the signature, {names[0]}/{name}=FILE, or give --signature")
        if signature not in names:
            raise UnknownNameError("signature", signature, names)
        found.setdefault(signature, {})[rest] = path
    return found
