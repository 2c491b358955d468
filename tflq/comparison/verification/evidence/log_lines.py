"""A line of a log without what loggers, debuggers and memory viewers put around its numbers.

Timestamps, levels and modules of loggers (Zephyr, ESP-IDF, mbed, Arduino, nRF, Segger RTT, syslog) are taken off, and
so are addresses and the characters beside a dump of memory. Words of memory, strings of C and the notations of gdb
become bytes.
"""

from __future__ import annotations

import re
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
