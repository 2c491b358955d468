"""The constructor's options: which of LiteRT's can be honoured."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, unique

from tflq.errors import OptionError
from tflq.profiles import Profile


@unique
class OpResolverType(Enum):
    """LiteRT's names for its op resolvers. AUTO leaves the choice to the profile."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


def check_resolver(resolver: object, profile: Profile) -> None:
    """Refuse a resolver that means other arithmetic than the profile's. LiteRT's own enum is understood too."""
    name = getattr(resolver, "name", None)
    if not isinstance(resolver, Enum) or name not in OpResolverType.__members__:
        raise OptionError("no op resolver type", name="experimental_op_resolver_type", got=resolver)
    if name not in ("AUTO", profile.source.resolver):
        raise OptionError(
            f"profile {profile.name!r} means {profile.source.resolver}; the results of {name} can differ",
            name="experimental_op_resolver_type",
        )


def check_threads(num_threads: object) -> None:
    """Refuse what LiteRT refuses. The number itself changes nothing: results do not depend on it."""
    if num_threads is None:
        return
    if not isinstance(num_threads, int):
        raise OptionError("not an int", name="num_threads", got=num_threads)
    if num_threads < 1:
        raise OptionError("not at least 1", name="num_threads", got=num_threads)


def check_delegates(delegates: Sequence[object] | None, latest_features: object) -> None:
    """Refuse delegates: they compute with arithmetic of their own."""
    if delegates:
        raise OptionError("delegates compute by themselves, tflq cannot run them", name="experimental_delegates")
    if latest_features:
        raise OptionError("this applies XNNPACK, a delegate", name="experimental_default_delegate_latest_features")


def check_registerers(registerers: Sequence[object] | None) -> None:
    """Refuse native custom operators."""
    if registerers:
        raise OptionError("native custom operators cannot be called", name="custom_op_registerers")
