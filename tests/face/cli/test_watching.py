"""--watch runs once for each change of what the command reads, and not for what it writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tflq.errors import FileAccessError
from tflq.face.cli.settings import State, files_of, state_of, watch
from tflq.model.storage.output import check_outputs, write_file
from tflq.model.storage.stores import write_store


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_bytes(b"1")


def runs(job: Callable[[], None], paths: Sequence[str], changes: dict[int, Callable[[], None]], looks: int = 30) -> int:
    """Return how often the job runs until the poller has paused so many times; changes happen at pauses by number."""
    done, pauses = [], []

    def run() -> int:
        done.append(1)
        job()
        return 130 if len(pauses) >= looks or len(done) > 9 else 0

    def pause() -> None:
        pauses.append(1)
        changes.get(len(pauses), lambda: None)()
        assert len(pauses) < 1000
        if len(pauses) == looks:
            Path(paths[0], "last" if os.path.isdir(paths[0]) else "").write_bytes(bytes(len(pauses)))

    assert watch(run, paths, lambda text: None, pause=pause) == 130
    return len(done) - 1  # without the run that ends it


def grows(path: str) -> Callable[[], None]:
    def write() -> None:
        write_file(path, bytes((Path(path).stat().st_size if os.path.exists(path) else 0) + 1))

    return write


@pytest.mark.parametrize("paths", [["a"], ["a", "out"], [".", "a", "out"], ["a", "sub"]])
def test_a_run_does_not_follow_its_own_outputs(paths: list[str]) -> None:
    Path("sub").mkdir()
    Path("out").write_bytes(b"")

    def job() -> None:
        grows("out")()
        grows("sub/out")()

    assert runs(job, paths, {}) == 1


def test_a_run_does_not_follow_a_bundle_that_it_writes() -> None:
    def job() -> None:
        with write_store("bundle", "index") as sink:
            for name in ("data/x", "index"):
                with sink.new(name) as file:
                    file.write(os.urandom(20))

    assert runs(job, [".", "bundle"], {}) == 1


def test_a_change_in_a_folder_runs_again() -> None:
    Path("sub").mkdir()
    assert runs(lambda: None, ["sub"], {3: lambda: Path("sub/b").write_bytes(b"1")}) == 2


def test_changes_in_a_row_are_one() -> None:
    sizes = {n: lambda n=n: Path("a").write_bytes(bytes(n)) for n in range(3, 9)}
    assert runs(lambda: None, ["a"], sizes) == 2  # type: ignore[arg-type]


def test_a_change_during_a_run_runs_again() -> None:
    changes = iter([lambda: Path("a").write_bytes(bytes(5))])
    assert runs(lambda: next(changes, lambda: None)(), ["a"], {}) == 2  # type: ignore[func-returns-value]


def test_a_file_that_is_gone_is_waited_for() -> None:
    states: list[State] = [{"a": (1, 1)}, {"a": (1, 1)}, {"a": None}, {"a": None}, {"a": (2, 2)}, {"a": (2, 2)}]
    seen: list[State] = []

    def look(paths: Sequence[str], outputs: frozenset[str]) -> State:
        seen.append(states[min(len(seen), len(states) - 1)])
        return seen[-1]

    codes = iter([0, 130])
    assert watch(lambda: next(codes), ["a"], lambda text: None, look=look, pause=lambda: None) == 130
    assert seen[:6] == states


def test_outputs_are_no_inputs() -> None:
    for name in ("b", "c", "d", "e"):
        Path(name).write_bytes(b"")
    assert files_of(["verify", "a", "-o", "b", "--html=c", "--sarif", "d", "-oe"]) == ["a"]
    assert list(state_of(["a", "b"], frozenset({os.path.realpath("b")}))) == ["a"]


def test_a_run_replaces_what_an_earlier_one_wrote_and_nothing_else() -> None:
    Path("other").write_bytes(b"kept")
    refused: list[str] = []

    def job() -> None:
        for name in ("page", "other"):
            try:
                check_outputs([name])
                grows(name)()
            except FileAccessError as error:
                refused.append(error.path)

    assert runs(job, ["a"], {3: lambda: Path("a").write_bytes(b"22")}) == 2
    assert (Path("page").stat().st_size, Path("other").read_bytes(), set(refused)) == (3, b"kept", {"other"})
