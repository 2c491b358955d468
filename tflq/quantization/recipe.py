"""A recipe: one value from which a quantized model can be built again, bit by bit.

Recipes, presets, their files and their stamp in a model.

Bounds of the numbers in a recipe.

The choice of ranges, as fields of a recipe: the observer, the objective and the search.

The refinements that follow the choice of ranges, as fields of a recipe.

Recipes by name, from a few seconds' work to an exhaustive search.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from tflq.engine.profiles import by_name
from tflq.errors import OptionError, UnknownNameError
from tflq.model.ir import TensorType
from tflq.texts import display_by


def check_number(name: str, number: float | None, least: float = -math.inf, most: float = math.inf) -> None:
    """Refuse a number outside [least, most], NaN and infinite numbers; None is accepted.

    Raises:
        OptionError: Names the field.
    """
    if number is not None and not (math.isfinite(number) and least <= number <= most):
        finite = "a finite number" if math.isinf(least) else f"at least {least:g}"
        raise OptionError(name, expected=finite if math.isinf(most) else f"{least:g} to {most:g}", got=number)


class Watch(Enum):
    """The observer of a tensor: its range is the start of a search, or the final range without a search."""

    MIN_MAX = "min-max"
    MOVING_AVERAGE = "moving-average"
    PERCENTILE = "percentile"
    HISTOGRAM = "histogram"
    """Bins that widen until they hold all values."""
    RELATIVE = "relative"
    """Widening bins in which each sample counts by the reciprocal of its power."""
    FIRST_BATCH = "first-batch"
    """Bins over the range of the first batch and a quarter more on either side."""
    VALUES = "values"
    """A random choice of the values."""


class Solving(Enum):
    """The solver that finds the range with the least loss."""

    GRID = "grid"
    GOLDEN_SECTION = "golden-section"
    ALTERNATING_ENDS = "alternating-ends"
    ALTERNATING_CODES = "alternating-codes"
    OCTAV = "octav"


class RangeTarget(Enum):
    """The place where the loss is measured."""

    VALUES = "values"
    """On the tensor itself."""
    OUTPUT = "output"
    """On the outputs of the operators that multiply it; on the tensor itself if there are none."""
    SCORES = "scores"
    """VALUES, but on the distribution if only the first output's SOFTMAX reads the scores, and VALUES is too
    coarse: rounding the scores alone costs 0.001 nats.
    """


class WatchOrder(Enum):
    """The parts that are already quantized while activations are observed."""

    FLOAT = "float"
    """Nothing."""
    WEIGHTS_FIRST = "weights-first"
    """All weights."""
    LAYER_BY_LAYER = "layer-by-layer"
    """All weights, and every earlier activation: each tensor has its own pass over the samples."""
    ONLINE = "online"
    """All weights, and earlier activations by the ranges known so far, in a single pass."""


class Objective(Enum):
    """The comparison of a value x with its quantized form y; p is the weight of x."""

    L2 = "l2"
    """sum p (x - y)^2 / sum p."""
    WEIGHTED_L2 = "weighted-l2"
    """sum p |x| (x - y)^2 / sum p |x|: large values count more."""
    EARTH_MOVER = "earth-mover"
    """sum p |x - y| / sum p: quantization keeps order, so carrying each value to its own code is the cheapest way."""
    COSINE = "cosine"
    """1 - cos(x, y), the angle between all values and their quantized forms."""
    KL = "kl"
    """Kullback-Leibler divergence of the quantized histogram from the clipped one.

    Source: Migacz 2017, "8-bit inference with TensorRT".
    """
    JENSEN_SHANNON = "jensen-shannon"
    """Jensen-Shannon divergence of the quantized histogram from the whole one: bounded, and defined for empty bins."""


class RangeRule(Enum):
    """The rule that assigns codes to a range."""

    NUDGE = "nudge"
    """Keep the width and round the zero point: an end may lose up to half a step.

    Source: LiteRT 2.3 ChooseQuantizationParams (quantization_util.h).
    """
    EXTEND = "extend"
    """Move one end outwards, the one that moves less, until the zero point is an integer: no value is clipped.

    Source: Hexagon nnlib adjust_minmax_for_zero (quantize.h).
    """
    SYMMETRIC = "symmetric"
    """Symmetric around 0, zero point 0; the least code is unused.

    Source: TensorFlow 2.21 QuantizeV2, mode SCALED with narrow_range (quantize_op.cc).
    """
    UNSIGNED = "unsigned"
    """SYMMETRIC, but ranges that are never negative get all codes for 0 to high, zero point at the least code.

    Source: TensorFlow 2.21 QuantizeAndDequantizeV2, signed_input false (quantize_and_dequantize_op.h).
    """


@dataclass(frozen=True, slots=True)
class Search:
    """The objective that a range minimizes, the place where it is measured, and the solver."""

    objective: Objective = Objective.L2
    solver: Solving = Solving.GRID
    target: RangeTarget = RangeTarget.VALUES


@dataclass(frozen=True, slots=True)
class Ranging:
    """The choice of ranges of activations and weights; without a search, the observed ranges are used.

    With `two_passes`, a first pass over the samples finds the ranges within which the second one counts.
    """

    watch: Watch = Watch.MIN_MAX
    rule: RangeRule = RangeRule.NUDGE
    activations: Search | None = None
    weights: Search | None = None
    order: WatchOrder = WatchOrder.FLOAT
    two_passes: bool = False


class Rounding(Enum):
    """The way in which weights become codes."""

    NEAREST = "nearest"
    GPTQ = "gptq"
    ADAROUND = "adaround"
    BIT_SPLIT = "bit-split"


class BiasCorrection(Enum):
    """The error that biases correct: none, the mean error of the weights, or that of the whole integer model so far."""

    NONE = "none"
    ANALYTIC = "analytic"
    EMPIRICAL = "empirical"


@dataclass(frozen=True, slots=True)
class Refining:
    """The refinements of a recipe.

    `match_inputs` lets weights correct errors of their inputs. `match_variance` rescales output channels to the float
    model's variance. At most `samples` of the calibration data are used.
    """

    rounding: Rounding = Rounding.NEAREST
    bias: BiasCorrection = BiasCorrection.NONE
    match_inputs: bool = False
    match_variance: bool = False
    samples: int = 128

    def __post_init__(self) -> None:
        check_number("samples", self.samples, 1)

    @property
    def changes_nothing(self) -> bool:
        """True if weights are rounded to nearest and nothing else is done."""
        return self == Refining(samples=self.samples)

    @property
    def needs_squares(self) -> bool:
        """True if second moments are needed, not means alone."""
        return self.rounding != Rounding.NEAREST or self.match_inputs or self.match_variance


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
class RecipeBudget:
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


@display_by("cards:recipe_card")
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
    budget: RecipeBudget | None = None
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
        budget: RecipeBudget | None = None,
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


_EQUAL = 0.5
_EXTREMES = Ranging()
_TYPICAL = Ranging(Watch.MOVING_AVERAGE)
_RELATIVE = Ranging(Watch.RELATIVE, activations=Search(Objective.L2, target=RangeTarget.SCORES))
_LEAST_NOISE = Ranging(Watch.HISTOGRAM, activations=Search(Objective.L2, target=RangeTarget.SCORES))
_WEIGHTS_TOO = Search(Objective.L2, Solving.GOLDEN_SECTION, RangeTarget.OUTPUT)

#: Samples for second moments; means need fewer.
MANY = 256
_ROUNDED = Refining(Rounding.GPTQ, samples=MANY)
_CORRECTED = Refining(bias=BiasCorrection.EMPIRICAL)
_BOTH = Refining(Rounding.GPTQ, BiasCorrection.EMPIRICAL, samples=MANY)
_MATCHED = Refining(Rounding.GPTQ, BiasCorrection.EMPIRICAL, match_inputs=True, samples=MANY)

#: Ranges that each rescue some model: heavy tails, one loud sample, channels of different magnitudes.
_FAST = (
    Methods(None, _EXTREMES),
    *(Methods(_EQUAL, ranging) for ranging in (_EXTREMES, _TYPICAL, _RELATIVE, _LEAST_NOISE)),
    *(Methods(_EQUAL, ranging, _CORRECTED) for ranging in (_EXTREMES, _RELATIVE)),
)
_BALANCED = (
    *_FAST,
    *(Methods(_EQUAL, ranging, _BOTH) for ranging in (_EXTREMES, _RELATIVE, _LEAST_NOISE)),
    *(Methods(_EQUAL, ranging, _ROUNDED) for ranging in (_TYPICAL, _RELATIVE)),
    Methods(_EQUAL, _RELATIVE, _MATCHED),
    Methods(_EQUAL, replace(_RELATIVE, weights=_WEIGHTS_TOO), _CORRECTED),
)
_BEST = (
    *_BALANCED,
    Methods(_EQUAL, _LEAST_NOISE, _CORRECTED),
    Methods(_EQUAL, replace(_EXTREMES, weights=_WEIGHTS_TOO), _CORRECTED),
    Methods(_EQUAL, replace(_LEAST_NOISE, weights=_WEIGHTS_TOO), _BOTH),
    Methods(None, _LEAST_NOISE, _MATCHED),
    *(Methods(_EQUAL, ranging, _MATCHED) for ranging in (_EXTREMES, _LEAST_NOISE)),
    *(Methods(None, ranging, _BOTH) for ranging in (_EXTREMES, _RELATIVE)),
    Methods(None, _TYPICAL, _ROUNDED),
)

PRESETS: Mapping[str, Recipe] = MappingProxyType(
    {
        "fast": Recipe(candidates=_FAST),
        "balanced": Recipe(candidates=_BALANCED, turns=2),
        "best": Recipe(candidates=_BEST, turns=4),
    }
)


def distinct(recipe: Recipe) -> tuple[Methods, ...]:
    """Return the recipe's candidates without those that its mode does not distinguish.

    If activations stay float, nothing depends on their ranges. Weights of four bits use GPTQ instead of rounding to
    nearest, and match inputs where biases are corrected; those with block scales use GPTQ alone.
    """
    if recipe.mode is Mode.INT8X4:  # rounding to nearest is too coarse
        return tuple(dict.fromkeys(replace(m, refining=_for_four_bits(m.refining)) for m in recipe.candidates))
    if recipe.mode is Mode.DYNAMICX4:
        refining = Refining(Rounding.GPTQ)
        return tuple(dict.fromkeys(replace(m, ranging=Ranging(), refining=refining) for m in recipe.candidates))
    if TYPES[recipe.mode].data is not None:
        return recipe.candidates
    return tuple(dict.fromkeys(replace(m, ranging=Ranging(weights=m.ranging.weights)) for m in recipe.candidates))


def _for_four_bits(refining: Refining) -> Refining:
    rounding = Rounding.GPTQ if refining.rounding is Rounding.NEAREST else refining.rounding
    matches = refining.match_inputs or refining.bias is not BiasCorrection.NONE
    return replace(refining, rounding=rounding, match_inputs=matches, samples=max(refining.samples, MANY))
