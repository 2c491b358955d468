"""Numbers in the text that a board prints: logs of serial ports, debuggers and memory viewers.

A log is read in blocks: a label and the numbers after it, on one line or several. What loggers put before a line, and
what surrounds a dump of memory, are taken off first (`log_lines`). Lines of `examples/firmware/tflq_log.h` carry their
own checksums; where there are any, only these are read.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tflq.comparison.verification.evidence.log_lines import bare, check_repeats

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
_SHORT = 4
#: The part that a label gives to numbers.
ROLE = re.compile(
    r"(?<![a-z])(?P<input>inputs?|in)(?![a-z])|(?<![a-z])(?P<output>outputs?|out|results?|predictions?|scores?|logits"
    r"|probabilit(?:y|ies)|inference)(?![a-z])",
    re.IGNORECASE,
)
#: A line that gives numbers of an input or output.
_ROLE_OF_NUMBERS = re.compile(rf"(?:{ROLE.pattern})[\s\w\[\]#]{{0,20}}[:=]\s*[\[({{]*\s*[-+]?\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Block:
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


def blocks_of(text: str) -> tuple[list[Block], list[int]]:
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


def _closed(one: _Open, *, in_hex: bool) -> Block:
    """Return a block whose bytes, if it shows memory, are C constants. `in_hex`: others do."""
    words = tuple(_bytes(one.words, one.label, in_hex=in_hex))
    if words:
        return Block(one.label, words, one.line, is_memory=True, is_elided=one.is_elided)
    return Block(one.label, tuple(one.words), one.line, is_elided=one.is_elided)


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


def memory_words(block: Block) -> tuple[str, ...]:
    """Return the bytes of a block of words such as 0x12345678, as a debugger prints memory; empty for others."""
    if any(len(word) != 10 or word[:2].lower() != "0x" for word in block.words):
        return ()
    return tuple(f"0x{pair}" for word in block.words for pair in reversed(_PAIR.findall(word[2:])))
