"""Name one arithmetic for failing cases of many kernels, in the grammar of profiles' files.

For each kernel (operator and types), forms are scored by the cases that they reproduce, passing ones included: forms
that explained other kernels first, then known profiles, then the grammar. Of the forms that reproduce most cases of a
kernel, the one is named that does so for most failing cases of all kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tflq.devices.learning.form import Form
from tflq.devices.learning.scored_forms import SCORED, Key, Observed, Scored, in_words, is_in_floats, observed_kernels
from tflq.diagnosis.joint import Joint, JointCause
from tflq.progress import Progress, silent

#: Kernels that are searched, those with most failing cases first.
_KERNELS = 100
#: Other arithmetics that are named beside a cause.
_NAMED = 6


def name_jointly(observed: Iterable[Observed], tell: Progress = silent) -> Joint:
    """Return the causes of all failing cases, and the nearest arithmetic of kernels without one."""
    kernels = sorted(observed_kernels(observed), key=lambda kernel: -len(kernel.failing))
    searched = kernels[:_KERNELS]
    found: list[Scored] = []
    for done, kernel in enumerate(searched):
        tell(f"naming the arithmetic of {kernel.subject}", done, len(searched))
        found.append(kernel.scored(_leading(found)))
    if not _is_one_profile(found):
        for one in found:
            if one.is_whole and not one.fits_in_floats():
                one.kernel.add_rivals(one)
    causes = _causes(found, prefers_floats=_computes_in_floats(found))
    explained = {(kernel.op, kernel.types) for cause in causes for kernel in cause.kernels}
    rest = [one for one in found if (one.kernel.subject.op, one.kernel.subject.types) not in explained]
    nearest = tuple(pair for one in rest for pair in one.nearest())
    left = len(kernels) - len(searched)
    return Joint(causes, nearest, f"{left} pairs of operator and types were left out" if left else "")


def _leading(found: Sequence[Scored]) -> list[Form]:
    """Return the forms that reproduce every case of the kernels so far, those of most kernels first."""
    counts: dict[Form, int] = {}
    for one in found:
        for form in dict.fromkeys(one.fitting().values()) if one.is_whole else ():
            counts[form] = counts.get(form, 0) + 1
    return sorted(counts, key=lambda form: -counts[form])[:SCORED]


def _is_one_profile(found: Sequence[Scored]) -> bool:
    """Return whether one profile reproduces every kernel that is reproduced whole; else each may fit by chance."""
    profiles = [{name for name, fields in one.fitting() if name in one.plain} for one in found if one.is_whole]
    return not profiles or bool(set.intersection(*profiles))


def _computes_in_floats(found: Sequence[Scored]) -> bool:
    """Return whether forms in floats reproduce most of the failing cases of kernels that are reproduced whole."""
    whole = [one for one in found if one.is_whole]
    reach = [len(one.kernel.failing) for one in whole if one.fits_in_floats()]
    return 2 * sum(reach) > sum(len(one.kernel.failing) for one in whole)


def _causes(found: Sequence[Scored], *, prefers_floats: bool) -> tuple[JointCause, ...]:
    """Return causes, each for all kernels that it fits and that no cause before it explains.

    Of causes with as many failing cases, one that computes in floats goes first if the target does. A form that
    reproduces no kernel whole is no cause if a case refutes it.
    """
    left = [one for one in found if one.flags]
    causes = []
    while left:
        counts: dict[Key, int] = {}
        for one in left:
            for key in one.fitting():
                counts[key] = counts.get(key, 0) + len(one.kernel.failing) * (2 if one.is_whole else 1)
        forms = {key: form for one in left for key, form in one.fitting().items()}
        best = max(counts, key=lambda key: (counts[key], prefers_floats and is_in_floats(forms[key])))
        mine = [one for one in left if best in one.fitting()]
        if any(one.is_whole for one in mine):  # it explains further kernels in part, rather than another cause
            mine += [one for one in left if one not in mine and not one.is_whole and one.may_be(best)]
            causes.append(_cause(best, mine))
        elif not any(one.is_refuted(one.fitting()[best]) for one in mine):
            causes.append(_cause(best, mine))
        left = [one for one in left if one not in mine]
    return tuple(sorted(causes, key=lambda cause: -len(cause.names)))


def _cause(key: Key, scored: Sequence[Scored]) -> JointCause:
    forms = [one.fitting(0)[key] for one in scored]
    flags = [one.flags[form] for one, form in zip(scored, forms, strict=True)]
    kernels = tuple(one.reproduced(flag) for one, flag in zip(scored, flags, strict=True))
    names = tuple(
        case.name
        for one, flag in zip(scored, flags, strict=True)
        for right, (case, _) in zip(flag, one.kernel.cases, strict=True)
        if right and case.differs
    )
    name = in_words(key, forms[0])
    others = tuple(other for other in _rivals(scored, forms) if other != name)[:_NAMED]
    operators = tuple(dict.fromkeys(kernel.op for kernel in kernels))
    failing = sum(kernel.all_failing for kernel in kernels)
    return JointCause(name, others, len(kernels), failing, operators, names, kernels)


def _rivals(scored: Sequence[Scored], forms: Sequence[Form]) -> Iterator[str]:
    """Yield other forms that reproduce as many cases of every kernel that is reproduced whole."""
    whole = [(one, form) for one, form in zip(scored, forms, strict=True) if one.is_whole] or [(scored[0], forms[0])]
    fitting = [one.fitting() for one, _ in whole]
    own = [form for _, form in whole]
    seen = {tuple(own)}
    for key in fitting[0]:
        theirs = tuple(found.get(key) for found in fitting)
        if None not in theirs and theirs not in seen:
            seen.add(theirs)  # type: ignore[arg-type]  # none of them is None
            yield in_words(key, fitting[0][key])
