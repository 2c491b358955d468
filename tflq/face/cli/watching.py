"""`--watch`: run the same command again whenever a file that it reads has changed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tflq.face.cli.exits import Exit

#: Seconds between two polls of the files.
INTERVAL = 0.5
#: Maximum number of files and folders that are watched below a folder.
_MOST = 10_000
#: Options of files and folders that commands write.
_OUTPUTS = ("-o", "--output", "--html", "--junit", "--sarif", "--overlay", "--work")

State = dict[str, tuple[int, int] | None]


def files_of(words: Sequence[str]) -> list[str]:
    """Return the words, and parts after their "=", that name input files or folders."""
    outputs = {words[i + 1] for i, word in enumerate(words[:-1]) if word in _OUTPUTS}
    outputs |= {word.partition("=")[2] for word in words if word.partition("=")[0] in _OUTPUTS}
    outputs |= {word[2:] for word in words if word.startswith("-o")}
    candidates = (part for word in words for part in (word, word.rpartition("=")[2]))
    return [path for path in dict.fromkeys(candidates) if path not in outputs and os.path.exists(path)]


def state_of(paths: Sequence[str], outputs: frozenset[str] = frozenset()) -> State:
    """Return time and size of each input file, also of those in folders; None for a missing one."""
    state: State = {}
    for path in paths:
        if os.path.realpath(path) in outputs:
            continue
        for file in _files(path, outputs):
            state[file] = _stat(file)
            if len(state) > _MOST:
                return state
    return state


def watch(
    run: Callable[[], int],
    paths: Sequence[str],
    say: Callable[[str], None],
    *,
    look: Callable[[Sequence[str], frozenset[str]], State] = state_of,
    pause: Callable[[], None] = lambda: time.sleep(INTERVAL),
) -> int:
    """Run, and again after each change of a file, until a signal ends it; then return the exit code.

    Args:
        run: Runs the command once and returns its exit code.
        paths: The files and folders to watch. Files that a run wrote are ignored.
        say: Prints a line.
        look: Returns the state of the files.
        pause: Waits for the time between two polls.
    """
    from tflq.model.storage.output import recorded_outputs

    with recorded_outputs() as written:  # a later run may replace what an earlier one wrote
        while True:
            before = look(paths, frozenset(written))
            code = run()
            if code in (Exit.INTERRUPTED, Exit.TERMINATED):
                return code
            outputs = frozenset(written)
            before = {path: seen for path, seen in before.items() if not _is_below(path, outputs)}
            say(f"tflq: exit code {code}; watching {', '.join(paths)} (Ctrl-C ends)")
            _wait_for_change(before, partial(look, paths, outputs), pause)


def _wait_for_change(before: State, look: Callable[[], State], pause: Callable[[], None]) -> None:
    """Return when the files differ from before, none is missing, and two polls in a row are equal."""
    now = look()
    while True:
        pause()
        last, now = now, look()
        if now == last != before and None not in now.values():
            return


def _files(path: str, outputs: frozenset[str]) -> Iterator[str]:
    """Yield a file, or the input files in a folder."""
    if not os.path.isdir(path):
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(one for one in folders if os.path.realpath(os.path.join(folder, one)) not in outputs)
        for file in sorted(files):
            if not file.startswith(".tflq-") and os.path.realpath(os.path.join(folder, file)) not in outputs:
                yield os.path.join(folder, file)


def _is_below(path: str, outputs: frozenset[str]) -> bool:
    """Return whether a path is an output or lies in one."""
    place = os.path.realpath(path)
    return any(place == output or place.startswith(output + os.sep) for output in outputs)


def _stat(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
