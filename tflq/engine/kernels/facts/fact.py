"""Facts about an operator apart from its kernels, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tflq.engine.kernels.facts.counts import Sizes
from tflq.engine.kernels.validity import RELEASES


@dataclass(frozen=True, slots=True)
class Weights:
    """Constant operands of a multiply-accumulate: their positions, and the dimension of the weights' channels.

    `axis` is None if all weights share one scale, `bias` if the operator has none.
    """

    data: int
    weights: int
    axis: int | None
    bias: int | None = None


@dataclass(frozen=True, slots=True)
class VersionRule:
    """How the operator is quantized. Its float operands are activations with scales of their own except as stated.

    `tied` are the inputs whose codes become output codes, so that scale and zero point must be equal (None: none, an
    empty tuple: all of them). `weights` are all that may be constants of another kind. `narrow` are inputs that have 8
    bits and zero point 0 where data have 16. `fills`: the kernel writes code 0 for the value 0.
    """

    tied: tuple[int, ...] | None = None
    weights: Weights | None = None
    narrow: tuple[int, ...] = ()
    fills: bool = False


@dataclass(frozen=True, slots=True)
class Needs:
    """The least version of the operator that takes operands of given types.

    `int8` and `int16` are for data of that type; uint8 needs the version of int8 if `uint8_too`, else version 1.
    `hybrid` is for float data with int8 weights of one scale, and of one a channel; `int4` for int8 data with int4
    weights; `hybrid_int4` for float data with int4 weights whose scales belong to blocks. The source asks for no
    version beyond that of floats there; runtimes that have this one have int4 weights, and older ones refuse it.
    Source: LiteRT 2.3 tflite/converter/tools/versioning/op_version.cc GetBuiltinOperatorVersion.
    """

    int8: int = 1
    int16: int = 1
    uint8_too: bool = False
    hybrid: tuple[int, int] | None = None
    int4: int = 1
    hybrid_int4: int = 1


#: Scale and zero point by element type.
Output = Mapping[str, tuple[float, int]]
#: For `moves`: every operand is moved.
ALL = None

FREE, MOVES, JOINS = VersionRule(), VersionRule(tied=(0,)), VersionRule(tied=())
#: Reasons why an operator with an integer kernel stays in float.
COMPUTES_CODES = "its integer kernel computes with codes as they are, without a scale"
COPIES_CODES = "its integer kernel copies codes as they are, without a scale"
ONLY_FLOATS = "XNNPACK alone has it, for float32"
NO_INTEGERS = "LiteRT has no kernel of it for integer activations"
#: Scales and zero points that kernels compute with, regardless of the file's.
#: Source: activations.cc SoftmaxPrepare, SigmoidPrepare, TanhPrepare, LogSoftmaxPrepare; l2norm.cc Prepare.
PROBABILITY: Output = {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)}
SIGNED_UNIT: Output = {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)}
UNIT_8BIT: Output = {"int8": (1 / 128, 0), "uint8": (1 / 128, 128)}
LOG_PROBABILITY: Output = {"int8": (16 / 256, 127), "uint8": (16 / 256, 255)}
#: For `xnnpack_floats`: float results are not reproduced; they are reproduced from LiteRT 2.1 on, on x86-64.
UNCLAIMED, SINCE_2_1 = "unclaimed", "since 2.1"


@dataclass(frozen=True, slots=True)
class Fact:
    """One operator.

    `room` is the module of `tflq.engine.kernels` that holds its kernels; its name in small letters if empty.

    The highest version that resolvers register, by the release from which on it holds, oldest first; 0: taken out.
    `both` is for either resolver, else `opt` for the optimized one, from r1.15 on, and `ref` for the reference one.
    Releases: 1.15 to 2.14 of TensorFlow, 1.0 to 2.1 of LiteRT; later ones are not limited. Read from the released
    packages by asking each for every operator and version.
    `later` names element types of its data that came after a release: "2.0 int8 int16, 2.12 int4". What came after a
    release of LiteRT came after 2.14 and all earlier ones of LiteRT, too.
    `micro`: TensorFlow Lite Micro registers it ("taken"); "uint8": also for uint8; "-hybrid": float activations with
    integer weights are refused; "-int32": that type of the first operand is refused.

    `pointwise`: each output element depends on the elements at its own place only. `sums`: it depends on the sum of the
    elements along axes only. `rounds_once`: floats are moved, compared or chosen, or the result of one operation that
    IEEE 754 rounds. `by_rows`: quantization per image can differ from quantization per tensor. `by_channel`: it has
    constants of its own for every channel. `moves` are the positions of operands whose elements are copied.
    `traced`: `explain` derives an element of 8 bits step by step, beyond showing the result.

    `quantize` is the rule of quantization; `kept_float` the reason why it stays in float though it has an integer
    kernel; `reads_shapes`: it looks at shapes alone; `converts`: it changes a tensor's form and does not compute.
    `table` is the position of a table whose rows it copies. `output` are the scale and zero point that its kernel
    computes with. `broken` are data types whose kernels in LiteRT give wrong results, and how.

    `delegated` is the first release in which XNNPACK's delegate has the operator, which no resolver has.

    `products` counts its multiply-accumulates, `passes` the passes of its innermost loop where these are more than the
    elements that it reads and writes.
    """

    op: str
    room: str = ""
    both: str = ""
    opt: str = ""
    ref: str = ""
    later: str = ""
    micro: str = ""
    pointwise: bool = False
    sums: bool = False
    rounds_once: bool = False
    by_rows: bool = False
    by_channel: bool = False
    moves: tuple[int, ...] | None = ()
    traced: bool = True
    quantize: VersionRule | None = None
    kept_float: str = ""
    reads_shapes: bool = False
    converts: bool = False
    needs: Needs = Needs()
    table: int | None = None
    output: Output = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)
    xnnpack_floats: str = ""
    delegated: str = ""
    products: Callable[[Sizes], int] | None = None
    passes: Callable[[Sizes], int] | None = None

    @property
    def home(self) -> str:
        """The module of its kernels."""
        return self.room or self.op.lower()

    @property
    def is_custom(self) -> bool:
        """True for a custom operator that every release has."""
        return not (self.both or self.opt or self.ref)

    def highest(self, release: str, optimized: bool) -> int:
        """Return the highest version that a resolver of a release registers; 0 if it does not have the operator.

        `release` is the number alone, from 1.15 of TensorFlow to 2.1 of LiteRT.
        """
        steps = (step.split(":") for step in (self.both or (self.opt if optimized else self.ref)).split())
        return ([0] + [int(version) for since, version in steps if ORDER[since] <= ORDER[release]])[-1]

    def came_after(self, release: str) -> tuple[str, ...]:
        """Return the element types of its data that came after a release; `later` is read."""
        lists = [words.split() for words in self.later.split(",") if words]
        last = len(ORDER) if ORDER[release] >= ORDER["2.14"] else ORDER[release]
        return tuple(type_ for known, *types in lists if ORDER[release] <= ORDER[known] <= last for type_ in types)


#: The order of the releases that facts name, by number alone. The newest has no limits, and no name here.
ORDER = {release.partition("-")[2]: position for position, release in enumerate(RELEASES[:-1])}
