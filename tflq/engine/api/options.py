"""The constructor's options: those of LiteRT that tflq honours, and the profiles that they mean."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from enum import Enum, unique

from tflq.engine.profiles import Profile, by_name
from tflq.errors import OptionError


@unique
class OpResolverType(Enum):
    """LiteRT's names for its op resolvers. AUTO means BUILTIN, as it does in LiteRT.

    Example:
        >>> model = "golden/models/digits_lstm_int8.tflite"
        >>> tflq.Interpreter(model, experimental_op_resolver_type=tflq.OpResolverType.BUILTIN).profile.name
        'litert-xnnpack'
    """

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


#: The profile of each resolver of LiteRT 2.3 on x86-64.
PROFILE_OF = {
    OpResolverType.AUTO: "litert-xnnpack",
    OpResolverType.BUILTIN: "litert-xnnpack",
    OpResolverType.BUILTIN_REF: "litert-ref",
    OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES: "litert-opt",
}
#: The profile if neither a resolver nor a profile is given.
DEFAULT_PROFILE = "litert-ref"


def profile_of(resolver: object, profile: str | Profile | None) -> Profile:
    """Return the profile that the two options mean together.

    An explicit profile wins; if a resolver contradicts it, a warning names the resolver.

    Args:
        resolver: An OpResolverType (LiteRT's and TensorFlow's own are understood), its number, or None for no
            preference.
        profile: A profile or its name, or None for the resolver's.

    Raises:
        OptionError: `resolver` is not a resolver.
        UnknownNameError: There is no profile of that name.
    """
    meant = None if resolver is None else _resolver(resolver)
    if profile is None:
        return by_name(DEFAULT_PROFILE if meant is None else PROFILE_OF[meant])
    chosen = by_name(profile)
    if meant not in (None, OpResolverType.AUTO) and meant.name != chosen.source.resolver:
        warnings.warn(
            f"experimental_op_resolver_type={meant.name} means profile {PROFILE_OF[meant]!r}, but "
            f"profile={chosen.name!r} was requested and is used",
            stacklevel=3,
        )
    return chosen


def _resolver(value: object) -> OpResolverType:
    """Read an enum of that name from any package, or LiteRT's number for it."""
    if isinstance(value, Enum) and value.name in OpResolverType.__members__:
        return OpResolverType[value.name]
    if isinstance(value, int) and not isinstance(value, (bool, Enum)) and 0 <= value < len(OpResolverType):
        return OpResolverType(value)
    names = ", ".join(OpResolverType.__members__)
    raise OptionError(
        "not an op resolver type", name="experimental_op_resolver_type", expected=f"one of {names}", got=value
    ).opening(f"Unrecognized passed in op resolver type: {value}")


def check_threads(num_threads: object) -> None:
    """Refuse the numbers of threads that LiteRT refuses. Others change nothing."""
    if num_threads is None:
        return
    if not isinstance(num_threads, int) or isinstance(num_threads, bool):
        error = OptionError("has the wrong type", name="num_threads", expected="an int", got=num_threads)
        raise error.opening("type of num_threads should be int")
    if num_threads < 1:
        error = OptionError("is too small", name="num_threads", expected="1 or more", got=num_threads)
        raise error.opening("num_threads should >= 1")


def check_delegates(delegates: Sequence[object] | None, latest_features: object) -> None:
    """Refuse delegates: they have arithmetic of their own."""
    if delegates:
        reason = "a delegate is native code, which tflq cannot run; leave it out, or choose a profile"
        raise OptionError(reason, name="experimental_delegates")
    if latest_features:
        reason = "tflq has no profile of XNNPACK with its latest features"
        raise OptionError(reason, name="experimental_default_delegate_latest_features")
