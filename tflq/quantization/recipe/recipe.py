"""A recipe: one value from which a quantized model can be built again, bit by bit."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum

from tflq.display import display_by
from tflq.engine.profiles import by_name
from tflq.errors import OptionError, UnknownNameError
from tflq.model.ir import TensorType
from tflq.quantization.recipe.bounds import check_number
from tflq.quantization.recipe.ranging import Ranging
from tflq.quantization.recipe.refining import Refining


class Mode(Enum):
    """The integers with which an operator computes.

    INT8X4 is INT8 with weights of four bits, if the kernel takes them. DYNAMICX4 is DYNAMIC with a scale for every
    block of BLOCK weights.
    """

    INT8 = "int8"
    INT8X4 = "int8x4"
    INT16X8 = "int16x8"
    UINT8 = "uint8"
    DYNAMIC = "dynamic"
    DYNAMICX4 = "dynamicx4"
    WEIGHTS = "weights"


@dataclass(frozen=True, slots=True)
class Types:
    """Element types of a mode: of activations (None: they stay float), weights and biases (None: it stays float)."""

    data: TensorType | None
    weights: TensorType
    bias: TensorType | None

    @property
    def per_channel(self) -> bool:
        """True if weights have a scale for each channel, and zero points of 0."""
        return self.weights in (TensorType.INT8, TensorType.INT4)


TYPES: dict[Mode, Types] = {
    Mode.INT8: Types(TensorType.INT8, TensorType.INT8, TensorType.INT32),
    Mode.INT8X4: Types(TensorType.INT8, TensorType.INT4, TensorType.INT32),
    Mode.INT16X8: Types(TensorType.INT16, TensorType.INT8, TensorType.INT64),
    Mode.UINT8: Types(TensorType.UINT8, TensorType.UINT8, TensorType.INT32),
    Mode.DYNAMIC: Types(None, TensorType.INT8, None),
    Mode.DYNAMICX4: Types(None, TensorType.INT4, None),
    Mode.WEIGHTS: Types(None, TensorType.INT8, None),
}


#: The word for mode WEIGHTS with weights of that type.
FLOAT16 = "float16"
#: The mode that replaces another one if its kernel takes no weights of four bits.
WITH_EIGHT_BITS = {Mode.INT8X4: Mode.INT8, Mode.DYNAMICX4: Mode.DYNAMIC}
#: Weights that share a scale in mode DYNAMICX4: the least block that XNNPACK takes.
BLOCK = 32

#: In place of the first operator of a float tail: the best cut found, or no tail.
AUTO, NO_TAIL = "auto", "none"
#: In place of names of runtimes: all that are known.
ALL = "all"

_CODES = (TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8, TensorType.INT16)
#: Types that a recipe's fields may name.
EDGES: dict[str, tuple[TensorType, ...]] = {
    "input_type": _CODES,
    "output_type": _CODES,
    "weights_type": (TensorType.INT8, TensorType.FLOAT16),
}


@dataclass(frozen=True, slots=True)
class Methods:
    """One configuration of all methods, in the order in which they act.

    `equalize` is the strength of the equalization of channels, 0 to 1; None leaves them unchanged.
    """

    equalize: float | None = None
    ranging: Ranging = field(default_factory=Ranging)
    refining: Refining = field(default_factory=Refining)

    def __post_init__(self) -> None:
        check_number("equalize", self.equalize, 0, 1)


class Spared(Enum):
    """The mode of the operators that a budget spares."""

    FLOAT = "float"
    INT8 = "int8"
    INT16X8 = "int16x8"


class Norms(Enum):
    """The form of normalizations, such as layer norms, in modes int8 and int8x4."""

    AUTO = "auto"
    """INT16 if that reduces the loss by a fifth, else INT8."""
    INT8 = "int8"
    INT16 = "int16"
    FLOAT = "float"


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds within which the most sensitive operators are spared the recipe's mode. None: no bound.

    With a bound on accuracy, the fewest operators that reach it are spared; otherwise the best of those
    that the bounds on cost allow.
    """

    least_sqnr: float | None = None  # of the outputs on held-back samples, dB
    least_agreement: float | None = None  # share of the same samples with the float model's top-1
    most_bytes: int | None = None  # of the file
    most_share: float | None = None  # of the multiply-accumulates, in spared operators: latency depends on it
    spared: Spared | None = None  # None: int8 if weights have four bits, else int16x8

    def __post_init__(self) -> None:
        check_number("least_sqnr", self.least_sqnr)
        check_number("least_agreement", self.least_agreement, 0, 1)
        check_number("most_bytes", self.most_bytes, 0)
        check_number("most_share", self.most_share, 0, 1)

    @property
    def wants_accuracy(self) -> bool:
        """True if an accuracy is to be reached."""
        return self.least_sqnr is not None or self.least_agreement is not None


@display_by("quantize.cards:recipe_card")
@dataclass(frozen=True, slots=True, init=False)
class Recipe:
    """A complete specification of a quantization. Modes and types may be given by their words; "float16" is both.

    `input_type` and `output_type` replace the float32 of the graph's inputs and outputs; None means the mode's own type
    of activations. `keep_float` names operators that stay in float: indices, types, names of their output tensors, or
    ranges FIRST..LAST of these. With `constant_names`, weights, biases and other constants keep their names, which no
    runtime needs. `candidates` are tried one after another. Each is judged on a quarter of the samples that it was not
    fitted to, and in `turns` (1 to 4) on other quarters, too; the best is then fitted to all. With a `budget`, some
    operators of the best one get a less coarse mode. `profile` is the runtime whose integer kernels refine and judge
    models; if it does not take a model, `litert-ref` replaces it. With further `runtimes` (integer modes only),
    candidates are judged on all of them, and scales are nudged so that they agree on more elements. A model that is
    `portable` to runtimes (profiles, paths of profile files, or ALL) gives the same bits on them for every input, as
    far as its operators allow: mode int8 only. With `portable_until`, the name of a
    tensor, what it does not depend on is quantized as usual. With `drop_softmax`, outputs of SOFTMAX become logits.
    `float_tail` is the operator from which on everything stays in float, in the words of `keep_float`; AUTO finds the
    cheapest cut that wins back what outputs of several parts lose, NO_TAIL keeps them integer. With `split_outputs`,
    the parts of such outputs become outputs of their own. Mode int8x4 without a budget gives `eight_bits`, a share of
    the bytes that four bits save, back to the operators that lose most by them; None: 0.2, or 0.5 where that is not
    enough for the scores of a classifier. Weights that training has rounded keep its codes, unless `refine_trained`
    lets refinement round them again. `norms` is the form of normalizations.

    Example:
        >>> tflq.Recipe(mode="int16x8", keep_float=("SOFTMAX",))
        Recipe: int16x8, judged under litert-xnnpack in 1 turn; no budget
        1 candidate: min-max; kept in float: SOFTMAX
        Next: tflq.quantize(model, calibration, recipe); .candidates
    """

    mode: Mode = Mode.INT8
    input_type: TensorType | None = None
    output_type: TensorType | None = None
    weights_type: TensorType = TensorType.INT8  # of mode WEIGHTS: INT8 or FLOAT16
    keep_float: tuple[str, ...] = ()
    constant_names: bool = True
    budget: Budget | None = None
    turns: int = 1
    profile: str = "litert-xnnpack"
    runtimes: tuple[str, ...] = ()
    portable: tuple[str, ...] = ()
    portable_until: str = ""
    drop_softmax: bool = False
    float_tail: str = AUTO
    split_outputs: bool = False
    eight_bits: float | None = None
    refine_trained: bool = False
    norms: Norms = Norms.AUTO
    candidates: tuple[Methods, ...] = (Methods(),)

    def __init__(
        self,
        mode: Mode | str = Mode.INT8,
        input_type: TensorType | str | None = None,
        output_type: TensorType | str | None = None,
        weights_type: TensorType | str = TensorType.INT8,
        keep_float: tuple[str, ...] = (),
        constant_names: bool = True,
        budget: Budget | None = None,
        turns: int = 1,
        profile: str = "litert-xnnpack",
        runtimes: tuple[str, ...] = (),
        portable: tuple[str, ...] = (),
        portable_until: str = "",
        drop_softmax: bool = False,
        float_tail: str = AUTO,
        split_outputs: bool = False,
        eight_bits: float | None = None,
        refine_trained: bool = False,
        norms: Norms | str = Norms.AUTO,
        candidates: tuple[Methods, ...] = (Methods(),),
    ) -> None:
        if mode == FLOAT16:
            mode, weights_type = Mode.WEIGHTS, TensorType.FLOAT16
        values = {
            "mode": _mode(mode),
            "input_type": _type("input_type", input_type),
            "output_type": _type("output_type", output_type),
            "weights_type": _type("weights_type", weights_type),
            "keep_float": keep_float,
            "constant_names": constant_names,
            "budget": budget,
            "turns": turns,
            "profile": profile,
            "runtimes": runtimes,
            "portable": portable,
            "portable_until": portable_until,
            "drop_softmax": drop_softmax,
            "float_tail": float_tail,
            "split_outputs": split_outputs,
            "eight_bits": eight_bits,
            "refine_trained": refine_trained,
            "norms": _norms(norms),
            "candidates": candidates,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check()

    @property
    def mode_word(self) -> str:
        """The word of the mode, and of the type of its weights if that is float16."""
        return FLOAT16 if self.weights_type == TensorType.FLOAT16 else self.mode.value

    @property
    def executor(self) -> str:
        """The profile that runs models: `litert-ref` if activations stay float, which it computes exactly."""
        return self.profile if TYPES[self.mode].data is not None else "litert-ref"

    @property
    def judges(self) -> tuple[str, ...]:
        """The profiles that judge candidates: that of refinement first, then the further runtimes."""
        return tuple(dict.fromkeys((self.executor, *self.runtimes)))

    @property
    def spared(self) -> Spared:
        """The mode of the operators that the budget spares."""
        if self.budget is not None and self.budget.spared is not None:
            return self.budget.spared
        return Spared.INT8 if self.mode is Mode.INT8X4 else Spared.INT16X8

    def check_against(self, trained: Collection[int]) -> None:
        """Refuse `refine_trained` if a model has no weights that training has rounded."""
        if self.refine_trained and not trained:
            raise OptionError("refine_trained: the model has no weights that training has rounded")

    def _check(self) -> None:
        for name in (self.profile, *self.runtimes, *(name for name in self.portable if name != ALL)):
            by_name(name)
        if self.portable and self.mode is not Mode.INT8:
            raise OptionError(f"portable: mode int8 only, not {self.mode.value}")
        if self.portable and ALL not in self.portable and len(set(self.portable)) < 2:
            raise OptionError("portable: name two runtimes or more, or all")
        if (self.drop_softmax or self.portable_until) and not self.portable:
            raise OptionError("portable_until and drop_softmax are for portable models only")
        if self.portable and (self.runtimes or self.budget is not None):
            raise OptionError("portable: a model with the same bits everywhere takes no further runtimes and no budget")
        if self.runtimes and TYPES[self.mode].data is None:
            raise OptionError(
                f"runtimes: mode {self.mode.value} computes with floats, whose last bits depend on the runtime"
            )
        if self.portable and (self.split_outputs or self.float_tail not in (AUTO, NO_TAIL)):
            raise OptionError("portable: the same bits everywhere need integers, no float tail and no split outputs")
        integers = self.output_type not in (None, TensorType.FLOAT32)
        if integers and self.float_tail not in (AUTO, NO_TAIL):
            raise OptionError("float_tail makes float32 outputs; leave output_type out")
        check_number("turns", self.turns, 1, 4)
        check_number("eight_bits", self.eight_bits, 0, 1)
        if not self.candidates:
            raise OptionError("a recipe needs a candidate")


def _mode(word: Mode | str) -> Mode:
    words = {mode.value: mode for mode in Mode}
    if isinstance(word, str) and word not in words:
        raise UnknownNameError("mode", word, (*words, FLOAT16))
    return words[word] if isinstance(word, str) else word


def _norms(word: Norms | str) -> Norms:
    words = {norms.value: norms for norms in Norms}
    if isinstance(word, str) and word not in words:
        raise UnknownNameError("norms", word, tuple(words))
    return words[word] if isinstance(word, str) else word


def _type(name: str, word: TensorType | str | None) -> TensorType | None:
    words = {type_.label: type_ for type_ in EDGES[name]}
    if isinstance(word, str) and word not in words:
        raise UnknownNameError(name, word, tuple(words))
    chosen = words[word] if isinstance(word, str) else word
    if chosen is not None and chosen not in EDGES[name]:
        raise UnknownNameError(name, chosen.label, tuple(words))
    return chosen
