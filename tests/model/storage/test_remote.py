"""Goldens at URLs keep the promises of local files: whole or not at all, nothing replaced or read is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.commands import tflq
from tflq.comparison.goldens.golden import Golden, InputFacts, Observation
from tflq.comparison.goldens.stored import check_golden_output, load_golden, save_golden
from tflq.errors import FileAccessError, OptionError

fsspec = pytest.importorskip("fsspec", reason="the extra remote is not installed")


def golden(value: int) -> Golden:
    array = np.full((2, 3), value, np.int8)
    return Golden((Observation((array,), (array + 1,)),), False, InputFacts("random", 0, 1), {}, "0" * 64)


def value_of(place: str) -> int:
    return int(load_golden(place).observations[0].inputs[0].flat[0])


@pytest.fixture(params=["file", "local", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A new folder at a URL."""
    yield f"{request.param}://{tmp_path}/at"
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


def left(url: str) -> list[str]:
    """The files below the folder of a URL."""
    system, place = fsspec.core.url_to_fs(url)
    return sorted(path[len(place) :] for path in system.find(place)) if system.exists(place) else []


def made(root: str) -> None:
    system, place = fsspec.core.url_to_fs(root)
    system.makedirs(place, exist_ok=True)


FORMS = ("/a.zip", "/a", "/a/")


@pytest.mark.parametrize("form", FORMS)
def test_a_failure_leaves_the_old_golden_and_nothing_else(root: str, form: str) -> None:
    def parts() -> Iterator[Golden]:
        yield golden(7)
        raise RuntimeError("the runtime crashed")

    made(root)
    with pytest.raises(RuntimeError):
        save_golden(parts(), root + form)
    assert left(root) == []
    save_golden([golden(1)], root + form)
    before = left(root)
    with pytest.raises(RuntimeError):
        save_golden(parts(), root + form)
    assert (value_of(root + form), left(root)) == (1, before)
    save_golden([golden(3)], root + form)
    assert (value_of(root + form), len(left(root))) == (3, len(before))


def test_a_lost_connection_is_reported_and_the_copy_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = fsspec.filesystem("memory")
    memory.store.clear()

    def failing(self: Any, source: str, path: str, **more: Any) -> None:
        raise RuntimeError("the connection is gone")  # clients of stores raise kinds of their own

    for place in ("memory://x/a", "memory://x/a.zip"):
        with monkeypatch.context() as patch:
            patch.setattr(type(memory), "put_file", failing)
            with pytest.raises(FileAccessError, match="connection"):
                save_golden([golden(1)], place)
        assert left("memory://x") == []
        save_golden([golden(5)], place)
        assert value_of(place) == 5
        memory.store.clear()


@pytest.mark.parametrize("form", FORMS)
def test_what_exists_is_replaced_by_force_alone(root: str, form: str) -> None:
    made(root)
    save_golden([golden(1)], f"{root}/in.zip")
    save_golden([golden(2)], root + form)
    done = tflq("golden", "prune", f"{root}/in.zip", "-o", root + form)
    assert (done.exit_code, "--force" in done.stderr, value_of(root + form)) == (2, True, 2)
    assert tflq("golden", "prune", f"{root}/in.zip", "-o", root + form, "--force").exit_code == 0
    assert value_of(root + form) == 1


@pytest.mark.parametrize("form", FORMS)
def test_what_is_read_is_never_written_over(root: str, form: str) -> None:
    made(root)
    save_golden([golden(1)], root + form)
    for same in (root + form, f"{root}/../at{form}"):
        done = tflq("golden", "prune", root + form, "-o", same, "--force")
        assert (done.exit_code, "an input" in done.stderr) == (2, True), done.output
    assert value_of(root + form) == 1


@pytest.mark.parametrize("form", ["a.zip", "a", "a.npz"])
@pytest.mark.parametrize("url_first", [True, False])
def test_a_path_and_its_url_are_one(tmp_path: Path, form: str, url_first: bool) -> None:
    plain, url = str(tmp_path / form), f"file://{tmp_path / form}"
    save_golden([golden(1)], url)
    assert value_of(plain) == value_of(url) == 1
    source, output = (url, plain) if url_first else (plain, url)
    done = tflq("golden", "merge", source, "-o", output, "--force")
    assert (done.exit_code, "an input" in done.stderr) == (2, True), done.output
    (tmp_path / "link").symlink_to(tmp_path / form)
    assert tflq("golden", "merge", source, "-o", f"file://{tmp_path}/link", "--force").exit_code == 2


def test_a_folder_of_something_else_is_left_alone(root: str) -> None:
    made(root)
    system, place = fsspec.core.url_to_fs(root)
    system.makedirs(f"{place}/mine", exist_ok=True)
    system.pipe_file(f"{place}/mine/precious.txt", b"x")
    with pytest.raises(FileAccessError, match="something else"):
        check_golden_output(f"{root}/mine", replaces=True)
    with pytest.raises(FileAccessError, match="is a file"):
        check_golden_output(f"{root}/mine/precious.txt", replaces=True)


@pytest.mark.parametrize(
    "url", ["reference://x", "nosuch://x", "reference://x.zip", "zip://a::nosuch://b", "http://[", "://"]
)
def test_unknown_urls_are_refused(url: str, tmp_path: Path) -> None:
    save_golden([golden(1)], tmp_path / "a.zip")
    for words in (("show", url), ("prune", url, "-o", tmp_path / "b.zip"), ("prune", tmp_path / "a.zip", "-o", url)):
        done = tflq("golden", *words)
        assert (done.exit_code, "fault in tflq" in done.stderr) == (2, False), done.output


def test_chains_are_not_written() -> None:
    with pytest.raises(OptionError, match="chained"):
        check_golden_output("simplecache::memory://x", replaces=True)
