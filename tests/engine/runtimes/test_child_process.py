"""What happens in a child process never ends this one, and is told with its place."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from support import suites
from support.pythons import fake_python
from support.running import samples_of
from tflq.engine.runtimes import RUNTIMES, by_name, process
from tflq.engine.runtimes.child.tflq_processor import cpu_model
from tflq.errors import RuntimeFailed, RuntimeMissing, UnknownNameError

posix = pytest.mark.skipif(os.name != "posix", reason="the stand-in is a shell script")


def test_every_runtime_has_its_own_name() -> None:
    assert {name: runtime.name for name, runtime in RUNTIMES.items()} == {name: name for name in RUNTIMES}
    assert {"litert-ref", "litert-opt", "litert-xnnpack", "tflm"} <= set(RUNTIMES)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="litert-ref"):
        by_name("litert-2")


def test_a_python_that_is_not_there() -> None:
    with pytest.raises(RuntimeMissing, match="no Python at"):
        by_name("litert-ref", python="/no/such/python").describe()


@posix
def test_a_runtime_that_is_not_installed_names_the_package(tmp_path: Path) -> None:
    bare = fake_python(tmp_path, f'exec "{sys.executable}" -I -S "$@"')  # no site-packages: NumPy is missing too
    with pytest.raises(RuntimeFailed, match="numpy"):
        by_name("litert-ref", python=bare).describe()
    hidden = fake_python(
        tmp_path,
        f'exec "{sys.executable}" -c "import sys; sys.modules[\'tflite_micro\'] = None; '
        'import runpy; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name=\'__main__\')" "$@"',
    )
    with pytest.raises(RuntimeMissing, match="install tflite-micro"):
        by_name("tflm", python=hidden).describe()


@posix
def test_an_abort_names_the_signal_the_stage_and_the_last_words(tmp_path: Path) -> None:
    script = 'printf "invoking of model 0, sample 3"; echo "CHECK failed: x" >&2; kill -ABRT $$'
    with pytest.raises(RuntimeFailed) as caught:
        by_name("litert-ref", python=fake_python(tmp_path, script)).describe()
    for part in ("litert-ref", "SIGABRT", "invoking of model 0, sample 3", "CHECK failed: x"):
        assert part in str(caught.value)


@posix
def test_a_hang_ends_at_the_timeout(tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailed, match=r"no end after 0\.2 s"):
        by_name("litert-ref", python=fake_python(tmp_path, "exec sleep 20"), timeout=0.2).describe()


@posix
def test_an_exit_without_a_result_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailed, match="ended with status 0 while starting"):
        by_name("litert-ref", python=fake_python(tmp_path, "exit 0")).describe()


def test_garbage_is_refused_by_the_runtime_and_told() -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    with pytest.raises(RuntimeFailed, match="loading of model 0, sample 0"):
        by_name("litert-ref").run([b"garbage" * 9], [(np.zeros(1, np.float32),)])


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="only Linux has the file")
def test_the_processor_is_named_as_the_system_names_it() -> None:
    names = {line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()}
    said = cpu_model()
    assert said
    assert all(word in " ".join(names) for word in said.split())


def test_a_large_model_reaches_the_runtime_as_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs are the same, and no file stays."""
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    golden = suites.ROOT / "golden" / "singleop"
    model = (golden / "models" / "leaky_relu_01.tflite").read_bytes()
    (sample, *_) = [inputs for inputs, _ in samples_of(dict(np.load(golden / "recorded" / "leaky_relu_01.npz")))]
    written: list[Path] = []
    write = process._written

    def noted(path: Path, content: bytes) -> str:
        written.append(path)
        return write(path, content)

    monkeypatch.setattr(process, "_written", noted)
    found = []
    for least in (1 << 30, 1):
        monkeypatch.setattr(process, "_LARGE", least)
        found.append(by_name("litert-ref").run([model], [tuple(sample)]).outputs[0][0][0])
    assert len(written) == 1
    assert not written[0].exists()
    assert found[0] is not None
    np.testing.assert_array_equal(found[0], found[1])
