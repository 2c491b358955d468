"""Numbers in the text that a board prints: logs of serial ports, debuggers and memory viewers.

A log is read in blocks: a label and the numbers after it, on one line or several. Timestamps, levels and modules that
loggers put before a line (Zephyr, ESP-IDF, mbed, Arduino, nRF, Segger RTT, syslog) are taken off first, and so are
addresses and the characters beside a dump of memory. Lines of `examples/firmware/tflq_log.h` carry their own
checksums; where there are any, only these are read.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tflq.errors import LimitError

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
        r"[IWEDV] \(\d+(?:[.:]\d+)*\) [\w./-]+: ",  # ESP-IDF
        rf"\[{_LEVEL}\s*\]\s*(?:\[[\w .-]+\]\s*)?:?\s*",  # mbed: [INFO][main]:
        rf"{_LEVEL}\b\s*[:|-]\s+(?:[\w.]+\s+-\s+)?",  # INFO - main -
        r"semihosting: ",
    )
)
_ADDRESS = re.compile(r"(?:0x)?[0-9a-fA-F]{4,16}(?:\s*<[^>]*>)?\s*:\s*|0x[0-9a-fA-F]{4,16}\s+(?=[0-9a-fA-F]{2}\s)")
_PAIR, _PAIRS = re.compile(r"[0-9a-fA-F]{2}"), re.compile(r"(?:[0-9a-fA-F]{2}){4,}")
_NUMBER = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?[fF]?|nan|inf(?:inity)?)", re.IGNORECASE
)
_BETWEEN = re.compile(r"[\s,;{}()\[\]]+")
#: The end of a label: numbers may begin behind it.
_ENDS = re.compile(r"[:=>\])]\s*|\s+")
_REPEATED = re.compile(r"([^\s,{}]{1,99}) <repeats (\d{1,9}) times>")
_NUMBERED = re.compile(r"(?P<stem>.*?)\s*(?:\[\s*(?P<index>\d{1,9})\s*\]|(?<![\w.])#?(?P<plain>\d{1,9}))\s*")
#: A debugger's name of a value, such as `$1 =`.
_HISTORY = re.compile(r"\$\d+\s*=")
_CHECKED = re.compile(r"TFLQ (\d{1,9}) (\d{1,9}) (\d{1,12}) (\d{1,12}) ((?:[0-9a-f]{2})+) ([0-9a-f]{8})\b")
#: Most words of a label, and most numbers that `<repeats N times>` expands to.
_LABEL_WORDS, _MOST = 16, 1 << 22


@dataclass(frozen=True, slots=True)
class Block:
    """Numbers of a log with the label before them. `line` is where they begin, counted from 1.

    `words` are C constants. Where the log shows bytes or words of memory, they are its bytes, as `0x12`.
    """

    label: str
    words: tuple[str, ...]
    line: int
    is_memory: bool = False


@dataclass(slots=True)
class _Open:
    """A block that is being read. `expected` is the index that the next line of a numbered list has."""

    label: str
    line: int
    words: list[str] = field(default_factory=list)
    expected: int | None = None


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of numbers in a log.

    Raises:
        LimitError: A debugger's `<repeats N times>` is of too many numbers.
    """
    if sum(int(count) for _, count in _REPEATED.findall(text)) > _MOST:
        raise LimitError(f"a log of more than {_MOST:,} repeated values")
    found: list[_Open] = []
    header, current = "", None
    for number, raw in enumerate(text.splitlines(), 1):
        line = _bare(raw)
        label, words = _split(line)
        label = "" if _HISTORY.fullmatch(label) else label
        if not words:
            header, current = (line or header), (current if not line else None)
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
        if current is None or label or current.expected is not None:
            current = _Open(label.strip(" :=\t->") or header, number)
            found.append(current)
        current.words += words
        header = ""
    return [_closed(one) for one in found]


def checked_tensors(text: str) -> tuple[dict[tuple[int, int], bytes], list[str]] | None:
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


def _bare(raw: str) -> str:
    """Return a line without what a logger or a memory viewer adds."""
    line = _ANSI.sub("", raw).strip()
    for _ in range(6):
        before = line
        for prefix in _PREFIXES:
            found = prefix.match(line)
            if found is not None:
                line = line[found.end() :].lstrip()
        if line == before:
            break
    bytes_of = line.split("|")[0]
    address = _ADDRESS.match(bytes_of)
    rest = bytes_of[address.end() :] if address is not None else bytes_of
    if address is not None and _split(rest)[1] and not _split(rest)[0]:
        return rest.strip()
    if "|" in line and all(_PAIR.fullmatch(word) for word in bytes_of.split()):
        return bytes_of.strip()
    if address is not None and (pairs := re.match(r"(?:[0-9a-fA-F]{2,4} )+(?= )", rest)) is not None:  # xxd
        return " ".join(_PAIR.findall(pairs[0]))
    return line


def _split(line: str) -> tuple[str, list[str]]:
    """Return the label of a line and the numbers behind it: as many of them as there are up to its end."""
    if "<repeats" in line:
        line = _REPEATED.sub(lambda m: " ".join([m[1]] * int(m[2])), line)
    for at in (0, *(end.end() for end in islice(_ENDS.finditer(line), _LABEL_WORDS))):
        words = [word for word in _BETWEEN.split(line[at:]) if word]
        if words and _are_numbers(words):
            return line[:at].strip(), words
    return line, []


def _are_numbers(words: Sequence[str]) -> bool:
    return all(map(_NUMBER.fullmatch, words)) or (
        (all(map(_PAIR.fullmatch, words)) and len(words) > 1) or all(map(_PAIRS.fullmatch, words))
    )


def _closed(one: _Open) -> Block:
    """Return a block whose bytes, if it shows memory, are C constants."""
    words = tuple(_bytes(one.words, one.label))
    if words:
        return Block(one.label, words, one.line, is_memory=True)
    return Block(one.label, tuple(one.words), one.line)


def _bytes(words: Sequence[str], label: str) -> Iterator[str]:
    """Yield the bytes of words of two or more hexadecimal digits; nothing if they are decimal or have a 0x."""
    is_hex = all(map(_PAIR.fullmatch, words)) or all(map(_PAIRS.fullmatch, words))
    has_letters = any(re.search(r"[a-fA-F]", word) for word in words)
    is_padded = (
        len(words) >= 8 and any(re.fullmatch(r"0\d", word) for word in words) and all(len(w) == 2 for w in words)
    )
    if is_hex and (has_letters or is_padded or "hex" in label.lower()):
        for word in words:
            yield from (f"0x{pair}" for pair in _PAIR.findall(word))


def memory_words(block: Block) -> tuple[str, ...]:
    """Return the bytes of a block of words such as 0x12345678, as a debugger prints memory; empty for others."""
    if any(len(word) != 10 or word[:2].lower() != "0x" for word in block.words):
        return ()
    return tuple(f"0x{pair}" for word in block.words for pair in reversed(_PAIR.findall(word[2:])))
