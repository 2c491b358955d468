"""Numbers in the text that a board prints, and the tensors they are.

A line of a log without what loggers, debuggers and memory viewers put around its numbers.

Timestamps, levels and modules of loggers (Zephyr, ESP-IDF, mbed, Arduino, nRF, Segger RTT, syslog) are taken off, and
so are addresses and the characters beside a dump of memory. Words of memory, strings of C and the notations of gdb
become bytes.

Numbers in the text that a board prints: logs of serial ports, debuggers and memory viewers.

A log is read in blocks: a label and the numbers after it, on one line or several. What loggers put before a line, and
what surrounds a dump of memory, are taken off first. Lines of `examples/firmware/tflq_log.h` carry their
own checksums; where there are any, only these are read.

Which tensors the blocks of a log are: by name, number or role in their labels, or by length.
"""

from __future__ import annotations

import math
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from tflq.comparison.evidence.c_arrays import Numbers, names_of, real_of
from tflq.errors import InputError, InputWarning, LimitError
from tflq.model.ir import CARRIER, GraphView, Model, TensorType, view
from tflq.texts import Statement, quoted
from tflq.typing import Array

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_LEVEL = r"(?:inf|dbg|wrn|err|info|debug|debg|warn|warning|error|trace|notice|fatal)"
#: Texts that loggers write before a line; they are removed repeatedly, as there may be several.
_PREFIXES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\d{1,2}> ",  # Segger RTT: the channel
        r"\d{1,2}:\d\d:\d\d(?:[.,]\d+)*\s*(?:->|[|>-])?\s+",  # Arduino IDE, terminals
        r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?Z?\]?[\s:|,-]*",  # date and time
        r"[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \S+ [\w./-]+(?:\[\d+\])?: ",  # syslog
        r"\[\s*(?:\d+:)+\d+(?:[.,]\d+)*\]\s*",  # Zephyr, nRF: [00:00:00.253,000]
        r"\[\s*\d+[.,]\d{3,}\]\s*",  # the kernel's [    1.234567]
        r"\[\s*\d{4,}\](?=\s*<)\s*",  # Zephyr's cycles
        rf"<{_LEVEL}>\s*[\w./-]+: ",  # Zephyr, nRF: level and module
        r"[IWEDV] \(\s*\d+(?:[.:]\d+)*\) [\w./-]+: ",  # ESP-IDF
        r"\[\s*\d+\]\[[IWEDV]\]\[[^\]]{1,99}\]\s*\w{1,99}\(\): ?",  # Arduino on ESP32
        rf"\[{_LEVEL}\s*\]\s*(?:\[[\w .-]+\]\s*)?:?\s*",  # mbed: [INFO][main]:
        rf"{_LEVEL}\b\s*[:|-]\s+(?:[\w.]+\s+-\s+)?",  # INFO - main -
        r"semihosting: ",
    )
)
#: A line as Python prints the bytes of one, as in `print(port.readline())`.
_PRINTED = re.compile(r"""b(["'])([^\\]*)(?:\\r)?(?:\\n)?\1""")
_ADDRESS = re.compile(
    r"(?:0x)?[0-9a-fA-F]{4,16}(?:\s*<[^>]*>)?\s*:\s*"
    r"|[0-9a-fA-F]{8}\s*=\s*"  # J-Link
    r"|0x[0-9a-fA-F]{4,16}\s+(?=[0-9a-fA-F]{2}\s)"
    r"|[0-9a-fA-F]{7,16}\s{2,}(?=[0-9a-fA-F]{2}\s)"  # hexdump -C
    r"|[0-7]{7}\s+(?=-?\d)"  # od
)
#: The last line of a dump: the address after its end.
_END = re.compile(r"[0-9a-f]{7,8}")
#: A word of memory: 1, 2, 4 or 8 bytes of hexadecimal digits.
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){1,2}|[0-9a-fA-F]{8}|[0-9a-fA-F]{16}")
#: A value behind an address, as gdb prints it, and the number of columns in which characters are looked for.
_VALUE, _COLUMNS = re.compile(r"[-+]?[0-9a-fA-Fx.]+(?:e[-+]\d+)?"), 64
_COLUMN = re.compile(r"\s{2,}\|?|\s?\|")
#: Bytes with dashes or colons between them; fewer may be a MAC address.
_JOINED = re.compile(r"(?<!\S)[0-9a-fA-F]{2}(?:([-:])[0-9a-fA-F]{2})(?:\1[0-9a-fA-F]{2}){6,}(?!\S)")
_REPEATED = re.compile(r"([^\s,{}]{1,99}) <repeats (\d{1,9}) times>")
_CHARACTER = re.compile(r"(?<=\d) '(?:\\.[0-7]{0,2}|[^'\\])'")
#: A number with another form of it behind, as in `-4 (0.3000)` or `0.91 (91%)`.
_TWICE = re.compile(
    r"(?<![\w.])([-+]?[\d.]{1,40}(?:e[-+]?\d{1,4})?)\s?\(\s?([-+]?[\d.]{1,40}(?:e[-+]?\d{1,4})?)\s?%?\)(?=[\s,;\]}]|$)",
    re.I,
)
_STRING = re.compile(
    r"""(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|((?:\\x[0-9a-fA-F]{2}){4,}))"""
    r"""(?: <repeats (\d{1,9}) times>)?(?:\.{3})?[,;]?\s*"""
)
_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})|\\([0-7]{1,3})|\\(.)|(.)", re.DOTALL)
_ESCAPED = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, "e": 27}
#: A command whose own numbers are no values: an address, a length.
_COMMAND = re.compile(
    r"(?:J-Link|>|\(gdb\))\s*>?\s*(?:x/\w+|md[bhwd]|mem(?:8|16|32)?|read_memory|monitor|savebin)\b", re.I
)
#: Largest number of values that repetitions of a debugger may be.
_MOST = 1 << 22


def check_repeats(text: str) -> None:
    """Raise LimitError if a debugger's `<repeats N times>` are of too many numbers."""
    if sum(int(count) for count in re.findall(r" <repeats (\d{1,9}) times>", text)) > _MOST:
        raise LimitError(f"a log of more than {_MOST:,} repeated values")


def bare(raw: str) -> str:
    """Return a line without what a logger or a memory viewer adds."""
    line = _ANSI.sub("", raw).strip()
    printed = _PRINTED.fullmatch(line)
    line = _without_prefixes(line if printed is None else printed[2])
    if _COMMAND.match(line):
        return re.sub(r"[\s,]+(?:0x[0-9a-fA-F]{1,16}|[0-9a-fA-F]{0,8}\d[0-9a-fA-F]{0,8})(?=[\s,]|$)", "", line)
    address = _ADDRESS.match(line)
    rest = line[address.end() :] if address is not None else line
    memory = _memory(rest, is_addressed=address is not None) if address is not None or "|" in rest else ""
    if memory:
        return memory
    if address is not None and all(map(_VALUE.fullmatch, re.split(r"[\s,;|]+", rest.strip(" \t,;|")))):
        return rest.strip()
    return "" if _END.fullmatch(line) and line[0] == "0" else _in_numbers(line)


def _without_prefixes(line: str) -> str:
    for _ in range(6):
        before = line
        for prefix in _PREFIXES:
            found = prefix.match(line)
            if found is not None:
                line = line[found.end() :].lstrip()
        if line == before:
            break
    return line


def _memory(rest: str, *, is_addressed: bool) -> str:
    """Return the bytes that a line of memory shows, as C constants; empty if it shows none.

    Words are little-endian, unless the characters beside them show another order.
    """
    for end in (*islice(_COLUMN.finditer(rest), _COLUMNS), None):
        words = (rest if end is None else rest[: end.start()]).split()
        if not words or len({len(word) for word in words}) > 1 or not all(map(_HEX.fullmatch, words)):
            continue
        size = len(words[0]) // 2
        forward = bytes.fromhex("".join(words))
        little = b"".join(bytes.fromhex(word)[::-1] for word in words)
        text = "" if end is None else rest[end.end() :].strip().rstrip("|")
        if not text and size > 1 and is_addressed:
            return _constants(little)
        for data in (forward, little):
            if text and _show(data) == text.replace(" ", ""):
                return _constants(data)
    words = re.split(r"\s*\|", rest)[0].split()
    return " ".join(words) if "|" in rest and words and all(len(w) == 2 and _HEX.fullmatch(w) for w in words) else ""


def _show(data: bytes) -> str:
    """Return bytes as memory viewers show them: a dot for what cannot be printed, here without spaces."""
    return "".join(chr(byte) if 33 <= byte < 127 else "." for byte in data if byte != 32)


def _in_numbers(line: str) -> str:
    """Return a line whose strings, characters and joined bytes are numbers, without remarks behind them."""
    line = _TWICE.sub(
        lambda found: found[2] if "." in found[1] and found[2].lstrip("+-").isdecimal() else found[1], line
    )
    line = _CHARACTER.sub("", line)
    start = re.search(r"""(^|[=:]\s*)(?:bytearray\(|bytes\()?b?(?=["'\\])""", line)
    if start is not None and "\\" in line:
        data = _string(line[start.end() :].rstrip(")"))
        if data:
            return line[: start.end(1)] + _constants(data)
    if "<repeats" in line:
        line = _REPEATED.sub(lambda m: " ".join([m[1]] * int(m[2])), line)
    line = _JOINED.sub(lambda m: _constants(bytes.fromhex(re.sub("[-:]", "", m[0]))), line)
    line = re.sub(r"\barray\(|,\s*dtype=\w{1,20}\)$", "", line)
    return re.sub(r"(?<=\d)\.{3}(?=\}{0,9}$)", "", _without_remark(line))


def _without_remark(line: str) -> str:
    """Return a line without text in parentheses at its end, such as `(scale 0.5)`."""
    start = line.rfind("(") if line.endswith(")") else -1
    return line[:start].rstrip() if start > 0 and re.search("[A-Za-z]", line[start:]) else line


def _string(text: str) -> bytes:
    """Return the bytes of C strings and characters with escapes, with gdb's repetitions; empty if text is no string."""
    data, at = b"", 0
    while at < len(text):
        found = _STRING.match(text, at)
        if found is None:
            return b""
        part = bytearray()
        for escape in _ESCAPE.finditer(found[1] or found[2] or found[3] or ""):
            if escape[1] or escape[2]:
                part.append(int(escape[1] or escape[2], 16 if escape[1] else 8) & 255)
            else:
                part += bytes([_ESCAPED.get(escape[3], ord(escape[3][0]) & 255)]) if escape[3] else escape[4].encode()
        data += bytes(part) * int(found[4] or 1)
        at = found.end()
    return data


def _constants(data: bytes) -> str:
    return " ".join(f"0x{byte:02x}" for byte in data)


_PAIR, _PAIRS = re.compile(r"[0-9a-fA-F]{2}"), re.compile(r"(?:[0-9a-fA-F]{2}){4,}")
_NUMBER = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?[fF]?|nan|inf(?:inity)?)", re.IGNORECASE
)
#: A byte of a loop with `%x`: without zeros before it, or with the sign of an int in front.
_BYTE = re.compile(r"(?:[fF]{6}(?=[89a-fA-F]))?([0-9a-fA-F]{1,2})")
_BETWEEN = re.compile(r"(?:[\s,;{}()\[\]]|(?<!\S)\|(?!\S))+")
#: The end of a label: numbers may begin behind it.
_ENDS = re.compile(r"[:=>,\])]\s*|\s+")
#: Labels whose number is a size: `input len=64`, `Output size: 10`.
_SIZED = re.compile(r"\b(?:len|length|size|sizeof|count|bytes|elements|numel|n)\b\W*$", re.IGNORECASE)
#: An element of a list as debuggers and loops print it: index, value, and perhaps address and type.
_ITEM = re.compile(r"\[\s*(\d{1,9})\s*\]\s+([^\s,;]+),?(?:\s+'[^']*')?(?:\s+0x[0-9a-fA-F]+)?(?:\s+[a-z_][\w ]*)?")
#: A score beside the name of its class.
_CLASS = re.compile(r"[-*]?\s*([A-Za-z][\w .-]{0,40}?)\s*[:=]")
_NUMBERED = re.compile(r"(?P<stem>.*?)\s*(?:\[\s*(?P<index>\d{1,9})\s*\]|(?<![A-Za-z\d.])#?(?P<plain>\d{1,9}))\s*")
#: The mark of values that were left out, as NumPy prints long arrays.
_ELIDED = re.compile(r"(?<![\w.])\.\.\.(?![\w.])|\u2026")
#: A debugger's name of a value, such as `$1 =`.
_HISTORY = re.compile(r"\$\d+\s*=")
_CHECKED = re.compile(r"TFLQ (\d{1,9}) (\d{1,9}) (\d{1,12}) (\d{1,12}) ((?:[0-9a-f]{2})+) ([0-9a-f]{8})\b")
#: Most words of a label.
_LABEL_WORDS = 16
#: Fewer words than these are words of English rather than bytes without zeros before them.
#: The part that a label gives to numbers.
ROLE = re.compile(
    r"(?<![a-z])(?P<input>inputs?|in)(?![a-z])|(?<![a-z])(?P<output>outputs?|out|results?|predictions?|scores?|logits"
    r"|probabilit(?:y|ies)|inference)(?![a-z])",
    re.IGNORECASE,
)
#: A line that gives numbers of an input or output.
_ROLE_OF_NUMBERS = re.compile(rf"(?:{ROLE.pattern})[\s\w\[\]#]{{0,20}}[:=]\s*[\[({{]*\s*[-+]?\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LogBlock:
    """Numbers of a log with the label before them. `line` is where they begin, counted from 1.

    `words` are C constants. Where the log shows bytes or words of memory, they are its bytes, as `0x12`.
    """

    label: str
    words: tuple[str, ...]
    line: int
    is_memory: bool = False
    is_elided: bool = False  # values between its words were left out


@dataclass(slots=True)
class _Open:
    """A block that is being read. `expected` is the index that the next line of a numbered list has."""

    label: str
    line: int
    words: list[str] = field(default_factory=list)
    expected: int | None = None
    is_scores: bool = False  # of classes by name
    is_value: bool = False  # one number behind its name: lines without a name do not belong to it
    is_elided: bool = False


def blocks_of(text: str) -> tuple[list[LogBlock], list[int]]:
    """Return the blocks of numbers in a log, and the lines that name an input or output whose numbers cannot be read.

    Raises:
        LimitError: A debugger's `<repeats N times>` is of too many numbers.
    """
    check_repeats(text)
    found: list[_Open] = []
    unread: list[int] = []
    header, current = "", None
    for number, raw in enumerate(text.splitlines(), 1):
        line, elisions = _ELIDED.subn(" ", bare(raw))
        if elisions and current is not None:
            current.is_elided = True
        label, words = _split(line)
        label = "" if _HISTORY.fullmatch(label) else label
        if len(words) == 1 and _SIZED.search(label):
            words = []
        if not words:
            unread += [number] * (_ROLE_OF_NUMBERS.match(line) is not None and not _SIZED.search(label))
            header = header if _HISTORY.search(line) else line or header
            current = current if not line else None
            continue
        if len(words) == 1 and _is_score(header, label) and (current is None or current.is_scores):
            if current is None:
                found.append(current := _Open(header, number, is_scores=True))
            current.words += words
            continue
        numbered = _NUMBERED.fullmatch(label.rstrip(":= \t->")) if label and len(words) == 1 else None
        if numbered is not None:
            index, stem = int(numbered["index"] or numbered["plain"]), numbered["stem"].strip(" :-")
            if current is None or current.expected != index or current.label != (stem or current.label):
                current = _Open(stem or header, number, expected=None if index else 0)
                found.append(current)
                if index:  # no list that begins at 0: a label with a number in it
                    current.label = label.rstrip(":= \t->")
            current.words += words
            current.expected = None if current.expected is None else index + 1
            continue
        if _ROLE_OF_NUMBERS.match(label):  # the numbers are only the end of a line in another form
            unread.append(number)
            continue
        if current is None or label or current.expected is not None or current.is_value:
            current = _Open(label.strip(" :=\t->") or header, number)
            found.append(current)
            current.is_value = bool(label) and len(words) == 1
        current.words += words
        current.is_elided |= elisions > 0
        header = ""
    in_hex = any(True for one in found for _ in _bytes(one.words, one.label))
    return [_closed(one, in_hex=in_hex) for one in found], unread


def check_tensors(text: str) -> tuple[dict[tuple[int, int], bytes], list[str]] | None:
    """Return the bytes of tensors by sample and number, and what is damaged; None if no line has a checksum."""
    parts: dict[tuple[int, int], tuple[int, dict[int, bytes]]] = {}
    problems = []
    seen = False
    for number, line in enumerate(text.splitlines(), 1):
        for found in _CHECKED.finditer(line):
            seen = True
            if zlib.crc32(found[0].rpartition(" ")[0].encode()) != int(found[6], 16):
                problems.append(f"line {number}: the checksum does not fit")
                continue
            key = int(found[1]), int(found[2])
            total, pieces = parts.setdefault(key, (int(found[3]), {}))
            if total == int(found[3]):
                pieces[int(found[4])] = bytes.fromhex(found[5])
        if "TFLQ " in line and not _CHECKED.search(line):
            problems.append(f"line {number}: is cut")
    if not seen:
        return None
    whole = {}
    for key, (total, pieces) in parts.items():
        data = b""
        for start in sorted(pieces):
            if start == len(data):
                data += pieces[start]
        if len(data) == total:
            whole[key] = data
        else:
            problems.append(f"tensor {key[1]} of sample {key[0]}: byte {len(data)} of {total} is missing")
    return whole, problems


def _is_score(header: str, label: str) -> bool:
    """Return whether a number belongs to a list of classes, below a line that announces an output."""
    role, name = ROLE.search(header), _CLASS.fullmatch(label)
    if role is None or role["output"] is None or not header.endswith(":") or name is None:
        return False
    return ROLE.search(name[1]) is None and re.search(r"\d", name[1]) is None


def _split(line: str) -> tuple[str, list[str]]:
    """Return the label of a line and the numbers behind it: as many of them as there are up to its end."""
    item = _ITEM.fullmatch(line)
    if item is not None and _NUMBER.fullmatch(item[2]):
        return f"[{item[1]}]", [item[2]]
    for at in (0, *(end.end() for end in islice(_ENDS.finditer(line), _LABEL_WORDS))):
        words = [word for word in _BETWEEN.split(line[at:]) if word]
        if words and _are_numbers(words):
            return line[:at].strip(), words
    return line, []


def _are_numbers(words: Sequence[str]) -> bool:
    return all(map(_NUMBER.fullmatch, words)) or (
        (all(map(_PAIR.fullmatch, words)) and len(words) > 1)
        or (all(map(_BYTE.fullmatch, words)) and len(words) >= _SHORT)
        or all(map(_PAIRS.fullmatch, words))
    )


def _closed(one: _Open, *, in_hex: bool) -> LogBlock:
    """Return a block whose bytes, if it shows memory, are C constants. `in_hex`: others do."""
    words = tuple(_bytes(one.words, one.label, in_hex=in_hex))
    if words:
        return LogBlock(one.label, words, one.line, is_memory=True, is_elided=one.is_elided)
    return LogBlock(one.label, tuple(one.words), one.line, is_elided=one.is_elided)


def _bytes(words: Sequence[str], label: str, *, in_hex: bool = False) -> Iterator[str]:
    """Yield the bytes of words of two or more hexadecimal digits; nothing if they are decimal or have a 0x.

    Words of two decimal digits each may be either; beside blocks that are `in_hex`, they are bytes.
    """
    are_bytes = all(map(_BYTE.fullmatch, words))
    is_hex = are_bytes or all(map(_PAIRS.fullmatch, words))
    has_letters = any(re.search(r"[a-fA-F]", word) for word in words)
    is_padded = (
        len(words) >= 8 and any(re.fullmatch(r"0\d", word) for word in words) and all(len(w) == 2 for w in words)
    )
    is_beside = in_hex and len(words) >= _SHORT and are_pairs_of_digits(words)
    if is_hex and (has_letters or is_padded or is_beside or "hex" in label.lower()):
        for word in words:
            yield from ([f"0x{word[-2:]}"] if are_bytes else (f"0x{pair}" for pair in _PAIR.findall(word)))


def are_pairs_of_digits(words: Sequence[str]) -> bool:
    """Return whether all words have two decimal digits, as bytes in hexadecimal may have, too."""
    return all(re.fullmatch(r"\d\d", word) for word in words)


def memory_words(block: LogBlock) -> tuple[str, ...]:
    """Return the bytes of a block of words such as 0x12345678, as a debugger prints memory; empty for others."""
    if any(len(word) != 10 or word[:2].lower() != "0x" for word in block.words):
        return ()
    return tuple(f"0x{pair}" for word in block.words for pair in reversed(_PAIR.findall(word[2:])))


_TENSOR = re.compile(r"\b(?:tensor|tns|t)\s*[_#=:\[ ]?\s*(\d{1,9})\b", re.IGNORECASE)
_INDEX = re.compile(r"[\s_\[#(]*(\d{1,9})")
_FLOAT = re.compile(r"[.]|\d[eE][-+]?\d|nan|inf", re.IGNORECASE)
#: Runs that only prepare the measured ones.
_WARM_UP = re.compile(r"\bwarm(?:ing)?[ _-]?up\b|\bdry[ _-]?run\b", re.IGNORECASE)
#: Shorter blocks of another length than a tensor's are words of the log, such as a size.
_SHORT = 4
#: Words of two digits that need not be decimal.
_DIGITS = 8
#: Operators whose operand is called logits.
_OF_LOGITS = ("SOFTMAX", "LOG_SOFTMAX", "LOGISTIC")

Entry = Array | Numbers


@dataclass(frozen=True, slots=True)
class _Fit:
    """A block, or several that belong together, as a tensor."""

    tensor: int
    entry: Entry
    used: int  # number of blocks


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """The tensors of a model, as labels name them."""

    graph: GraphView
    names: Mapping[str, int]

    def tensors(self, label: str) -> list[int]:
        """Return the tensors that a label names: by name, else by number, else by role."""
        known = self.named(label) if label else []
        role = ROLE.search(label)
        if known or role is None:
            return known
        group = self.graph.inputs if role["input"] else self.graph.outputs
        index = _INDEX.match(label, role.end())
        if index is not None and int(index[1]) < len(group):
            return [group[int(index[1])]]
        return list(group)

    def named(self, label: str) -> list[int]:
        """Return the tensor that a label has the name or the number of, if there is one."""
        words = [label, *re.findall(r"[\"'`]([^\"'`]+)[\"'`]", label), *re.split(r"[\s\"'`,;:=\[\](){}<>]+", label)]
        known = [self.names[word] for word in sorted(filter(None, words), key=len, reverse=True) if word in self.names]
        number = _TENSOR.search(label)
        if not known and number is not None and int(number[1]) < len(self.graph.tensors):
            known = [int(number[1])]
        return known[:1]

    def role_of_output(self, label: str) -> str:
        """Return the word of a label that makes it an output's, without an s; empty if it names the tensor, too."""
        role = ROLE.search(label)
        if role is None or role["output"] is None or self.named(label):
            return ""
        word = role["output"].lower().rstrip("s")
        return "output" if word in ("out", "result") else word


def log_entries(model: Model, text: str, source: str) -> list[dict[str, Entry]]:
    """Return the tensors in a log by number, for each sample.

    If the log begins with an input and holds every tensor equally often, the k-th time is that of sample k: inputs may
    come first, and outputs after them all. Otherwise a tensor that is printed again begins the next sample.

    Raises:
        InputError: The log holds no tensor of the model, or one that may be several; or all are damaged.
    """
    checked = check_tensors(text)
    if checked is not None:
        return _checked_samples(model, *checked, source)
    labels = _Labels(view(model), names_of(model))
    read, unread = blocks_of(text)
    blocks, problems = _settle_roles(labels, read)
    fits: list[_Fit] = []
    at, unclear = 0, []
    while at < len(blocks):
        reason = _reason_to_skip(blocks[at])
        if reason:
            problems.append(f"line {blocks[at].line}: {reason}: not compared")
            at += 1
            continue
        candidates = list(_candidates(labels, blocks, at))
        if len(candidates) == 1:
            found = candidates[0]
            fits.append(found)
            if len(blocks[at].words) >= _DIGITS and are_pairs_of_digits(blocks[at].words):
                problems.append(
                    f"line {blocks[at].line}: two digits each, read as decimal; write 0x before hexadecimal"
                )
            at += found.used
            continue
        if candidates:
            unclear.append((blocks[at], [one.tensor for one in candidates]))
        elif len(blocks[at].words) >= _SHORT:
            unclear.append((blocks[at], []))
        at += 1
    samples = _by_sample(labels.graph, fits)
    problems += [_problem(labels, block, tensors) for block, tensors in unclear]
    if unread:
        problems.append(
            f"{'lines' if unread[1:] else 'line'} {', '.join(map(str, unread[:5]))}: output or input not read"
        )
    if not samples:
        expected = "a tensor's name or number, input or output, before as many numbers as it has"
        is_other = any(labels.tensors(block.label) for block in blocks)
        got = problems[0] if problems else f"{len(blocks)} blocks of other lengths" if blocks else "no numbers"
        words = "holds no tensor of the model" + (", and may be of another one" if is_other else "")
        raise InputError(words, name=source, expected=expected, got=got)
    for problem in problems:
        warnings.warn(InputWarning(Statement(f"{source}: {problem}", "log-block")), stacklevel=2)
    return samples


def _by_sample(graph: GraphView, fits: Sequence[_Fit]) -> list[dict[str, Entry]]:
    """Return the tensors of each sample; see `log_entries`."""
    samples: list[dict[str, Entry]] = []
    times = Counter(fit.tensor for fit in fits)
    in_turn = len(set(times.values())) == 1 and fits[0].tensor in graph.inputs
    so_far: Counter[int] = Counter()
    for fit in fits:
        key, k = str(fit.tensor), so_far[fit.tensor] if in_turn else len(samples) - 1
        so_far[fit.tensor] += 1
        if k in (-1, len(samples)) or key in samples[k]:
            samples.append({})
            k = len(samples) - 1
        samples[k][key] = fit.entry
    return samples


def _reason_to_skip(block: LogBlock) -> str:
    """Return why a block holds no tensor of a sample, regardless of its length; empty if it may."""
    if block.is_elided:
        return "... stands for values that were left out; NumPy prints all after np.set_printoptions(threshold=np.inf)"
    return f"{quoted(block.label)} is no sample" if _WARM_UP.search(block.label) else ""


def _settle_roles(labels: _Labels, blocks: Sequence[LogBlock]) -> tuple[list[LogBlock], list[str]]:
    """Return the blocks, of which only one role is the model's only output, and the problems of the others.

    Logits beside an output are the operand of the operator that makes it, if that is a SOFTMAX or LOGISTIC.
    """
    graph = labels.graph
    roles = {id(block): labels.role_of_output(block.label) for block in blocks}
    named = dict.fromkeys(filter(None, roles.values()))
    if len(named) < 2 or len(graph.outputs) != 1:
        return list(blocks), []
    best = "output" if "output" in named else next((role for role in named if role != "logit"), next(iter(named)))
    maker = graph.maker(graph.outputs[0])
    kept, problems = [], []
    for block in blocks:
        role = roles[id(block)]
        if role == "logit" and best != role and maker is not None and maker.builtin in _OF_LOGITS:
            kept.append(replace(block, label=f"tensor {maker.inputs[0]}"))
        elif role in ("", best):
            kept.append(block)
        else:
            what = f"line {block.line}: {quoted(block.label)} beside {quoted(best)} is not known"
            problems.append(f"{what}; print the number or the name of the tensor before it")
    return kept, problems


def _candidates(labels: _Labels, blocks: Sequence[LogBlock], at: int) -> Iterator[_Fit]:
    """Yield the tensors that the block may be, alone or with those after it; the label decides if it names one."""
    graph = labels.graph
    named = labels.tensors(blocks[at].label)
    groups = ([*named],) if named else (graph.outputs, tuple(dict.fromkeys((*graph.inputs, *graph.computed))))
    for group in groups:
        found = [
            fit for tensor in dict.fromkeys(group) if (fit := _fit(labels, tensor, blocks, at, is_named=bool(named)))
        ]
        if found:
            yield from found
            return


def _fit(labels: _Labels, tensor: int, blocks: Sequence[LogBlock], at: int, *, is_named: bool) -> _Fit | None:
    """Return the block as a tensor, if it has its length. If it is named, blocks without a name may belong to it."""
    spec = labels.graph.tensors[tensor]
    size = math.prod(spec.shape)
    if not isinstance(spec.type, TensorType) or not size:
        return None
    width = CARRIER[spec.type].itemsize
    block = blocks[at]
    last = len(blocks) if is_named else at + 1
    for end in range(at, last):
        if end > at:
            if blocks[end].label and len(blocks[end].words) == 1:  # a line of others, such as `heap: 1234`
                if labels.tensors(blocks[end].label):
                    return None
                continue
            if labels.tensors(blocks[end].label) or blocks[end].is_memory != block.is_memory:
                return None
            block = replace(block, words=(*block.words, *blocks[end].words))
        for words in filter(None, (block.words, memory_words(block))):
            is_bytes = block.is_memory or words is not block.words
            if len(words) == size * width if is_bytes else len(words) in (size, size * width):
                return _Fit(tensor, _entry(block.label or f"line {block.line}", words, width), end - at + 1)
        if len(block.words) > size * width:
            return None
    return None


def _entry(name: str, words: tuple[str, ...], width: int) -> Entry:
    """Return C constants, or floats if one of the words is one."""
    if any(_FLOAT.search(word) for word in words if "x" not in word.lower()):
        return np.array([real_of(word, name) for word in words])
    return Numbers(name, tuple(_constant(word, width) for word in words))


def _constant(word: str, width: int) -> str:
    """Return an integer as C writes it: without leading zeros, which make it octal.

    `%x` prints a negative number as one of int: of its digits, those of `width` bytes are left.
    """
    if "x" in word.lower():
        digits = word.lower().partition("x")[2]
        above, own = digits[: -2 * width], digits[-2 * width :]
        return f"0x{own}" if len(digits) in (8, 16) and set(above) == {"f"} and own[0] in "89abcdef" else word
    return ("-" if word[0] == "-" else "") + (word.lstrip("+-0") or "0")


def _checked_samples(
    model: Model, tensors: Mapping[tuple[int, int], bytes], problems: Sequence[str], source: str
) -> list[dict[str, Entry]]:
    """Return the tensors whose lines are whole, by sample, and warn of the others."""
    samples: dict[int, dict[str, Entry]] = {}
    beyond = [key[1] for key in tensors if key[1] >= len(view(model).tensors)]
    if beyond:
        expected = f"0 to {len(view(model).tensors) - 1}"
        words = "is of another model: it holds a tensor that this one lacks"
        raise InputError(words, name=source, expected=expected, got=beyond[0])
    for (sample, tensor), data in sorted(tensors.items()):
        samples.setdefault(sample, {})[str(tensor)] = Numbers(f"tensor {tensor}", tuple(f"0x{b:02x}" for b in data))
    if not samples:
        raise InputError("holds no whole tensor", name=source, expected="lines with checksums", got=problems[0])
    for problem in problems:
        warnings.warn(InputWarning(Statement(f"{source}: {problem}", "log-line")), stacklevel=2)
    return [samples[number] for number in sorted(samples)]


def _problem(labels: _Labels, block: LogBlock, tensors: Sequence[int]) -> str:
    """Return what keeps a block from being a tensor."""
    graph = labels.graph
    what = f"line {block.line}: {len(block.words):,} numbers" + (f" after {quoted(block.label)}" if block.label else "")
    if tensors:
        named = ", ".join(f"{t} {quoted(graph.tensors[t].name or '')}" for t in tensors[:5])
        return f"{what} may be {len(tensors)} tensors ({named}); print the number or the name of the tensor before them"
    named_tensors = labels.tensors(block.label)
    if not named_tensors:
        return f"{what} are of no tensor's length: not compared"
    tensor = named_tensors[0]
    return f"{what}, and tensor {tensor} has {math.prod(graph.tensors[tensor].shape):,}: not compared"
