"""Foreign systems by name, with settings: as runtimes and as targets. A stand-in plays the system."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import tflq as package
from support import suites
from support.commands import tflq
from tflq.devices.suites.draft import T, build
from tflq.devices.suites.make import Case, Suite, write_suite
from tflq.devices.suites.target import SCRIPTS, CommandTarget, target_of
from tflq.engine.runtimes import FOREIGN, RUNTIMES, by_name, is_named, named
from tflq.engine.runtimes.child import tflq_foreign
from tflq.errors import OptionError, RuntimeFailed, RuntimeMissing, UnknownNameError
from tflq.model.storage.arrays import digest

#: A stand-in for OpenVINO: it gives its first input as every output. PRECISION decides what it does with bfloat16.
OPENVINO = """
import numpy as np

class Core:
    def read_model(self, path):
        data = open(path, "rb").read()
        assert data[4:8] == b"TFL3", data[:8]
        return data

    def compile_model(self, model, device, config):
        if config.get("INFERENCE_PRECISION_HINT") == "bf16":
            import tempfile
            folder = tempfile.mkdtemp()
            raise RuntimeError(f"bfloat16 is not for\\n  {folder}/model.bc Stack backtrace: 0: main")
        return Compiled(config.get("INFERENCE_PRECISION_HINT"))

class Compiled:
    outputs = ("first",)

    def __init__(self, precision):
        self.precision = precision

    def __call__(self, inputs):
        value = np.array(inputs[0]).reshape(-1)
        return {"first": value.astype(np.float32) if self.precision == "f16" else value + (self.precision is None)}
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the stand-in where child processes find it, and a package that cannot be imported."""
    place = tmp_path / "packages"
    place.mkdir()
    (place / "openvino.py").write_text(OPENVINO)
    (place / "cv2.py").write_text("raise ImportError('no libGL here')")
    monkeypatch.setenv("PYTHONPATH", str(place), prepend=os.pathsep)
    return place


@pytest.fixture
def model() -> bytes:
    return build("RESHAPE", [T("int8", (2, 3), 0.5), T("int32", (1,), value=[6])], [T("int8", (6,), 0.5)])


@pytest.fixture
def suite(model: bytes, tmp_path: Path) -> Path:
    """A suite of one case, which a target passes that gives its input."""
    given = np.arange(6, dtype=np.int8).reshape(2, 3)
    stored = [np.frombuffer(model, np.uint8), given, given.reshape(6)]
    names = list(map(digest, stored))
    case = Case("00000-reshape", "RESHAPE", "int8", "smoke", "", (), names[0], ((names[1],),) * 2, ((names[2],),) * 2)
    path = tmp_path / "suite.npz"
    write_suite(str(path), Suite("litert-ref", "smoke", 0, "0", (case,)), dict(zip(names, stored, strict=True)))
    return path


def test_every_system_has_its_own_name_and_function() -> None:
    assert not set(FOREIGN) & {*RUNTIMES, *SCRIPTS}
    for name, system in FOREIGN.items():
        assert (system.name, system.signatures) == (name, False)
        assert system.is_foreign
        assert system.adapter in tflq_foreign.SYSTEMS
        assert system.packages
        assert named(name) == system
    for program, script in SCRIPTS.values():
        assert (Path(package.__file__).parent / "devices" / "suites" / "scripts" / script).is_file(), program


def test_settings_are_part_of_the_name() -> None:
    chosen = named("OpenVINO precision=bf16")
    assert (chosen.name, chosen.all_settings) == ("openvino precision=bf16", {"precision": "bf16"})
    assert named("openvino").all_settings == {"precision": "f32"}
    assert named(chosen.name) == chosen
    assert named("micro-program program='a b'").all_settings == {"program": "a b"}
    assert named(named("micro-program program='a b'").name).all_settings == {"program": "a b"}
    assert named("onnxruntime opset=17").all_settings == {"opset": "17"}


@pytest.mark.parametrize(
    ("name", "known"), [("litert", "litert-xnnpack"), ("tflite-micro", "tflm"), ("TensorFlow", "tensorflow-xnnpack")]
)
def test_a_package_is_its_default_interpreter(name: str, known: str) -> None:
    assert named(name) == RUNTIMES[known]


@pytest.mark.parametrize(
    "name", ["openvino precision=f8", "openvino precision", "openvino precision=", "litert-ref a=b"]
)
def test_a_setting_without_a_known_value_is_refused(name: str) -> None:
    with pytest.raises(OptionError):
        named(name)


@pytest.mark.parametrize("name", ["openvino speed=1", "openvin", "", "'", "openvino 'x"])
def test_an_unknown_name_or_setting_is_refused(name: str) -> None:
    with pytest.raises(UnknownNameError):
        named(name)


@pytest.mark.parametrize(
    ("words", "is_one"),
    [
        ("openvino", True),
        ("openvino precision=bf16", True),
        ("tflm", True),
        ("litert-2.4-ref", True),
        ("./openvino", False),
        ("python target.py", False),
        ("openvinos", False),
        ("'", False),
        ("", False),
    ],
)
def test_a_command_is_no_name(words: str, is_one: bool) -> None:
    assert is_named(words) == is_one


def test_a_target_runs_it(stand_in: Path, suite: Path) -> None:
    done = tflq("conform", "run", suite, "--target", "openvino")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("PASSES openvino: 1 of 1 case passes against litert-ref")
    default = tflq("conform", "run", suite, "--target", "openvino", "--target-option", "precision=default")
    assert (default.exit_code, default.stdout.split(":")[0]) == (1, "FAILS openvino precision=default")
    named = tflq("conform", "run", suite, "--target", "openvino precision=default", "--python", sys.executable)
    again = f"--target 'openvino precision=default' --python {sys.executable}"
    assert again in " ".join(named.stdout.split())


def test_a_refusal_has_the_systems_words_on_one_line(stand_in: Path, suite: Path) -> None:
    found = package.conform(suite, "openvino precision=bf16")
    (case,) = found.cases
    assert case.result.value == "refused"
    assert case.reason == "RuntimeError: bfloat16 is not for model.bc"


def test_an_output_of_another_type_is_refused(stand_in: Path, suite: Path) -> None:
    (case,) = package.conform(suite, "openvino precision=f16").cases
    assert (case.result.value, case.reason) == ("refused", "TypeError: output 0 is float32, not int8")


def test_a_system_that_is_not_installed_says_what_to_install(stand_in: Path, suite: Path, model: bytes) -> None:
    done = tflq("conform", "run", suite, "--target", "opencv")
    assert done.exit_code == 4, done.output
    assert "no libGL here; pip install opencv-python-headless" in done.stderr
    with pytest.raises(RuntimeMissing, match="install opencv-python-headless there"):
        by_name("opencv").run([model], [(np.zeros((2, 3), np.int8),)])
    program = tflq("conform", "run", suite, "--target", "micro-program")
    assert (program.exit_code, "program=PATH" in program.stderr) == (4, True)


def test_a_runtime_runs_models_and_reports_what_ran(stand_in: Path, model: bytes) -> None:
    given = np.arange(6, dtype=np.int8).reshape(2, 3)
    done = by_name("openvino").run([model], [(given,), (given + 1,)])
    assert [np.array_equal(outputs[0], given.reshape(6) + k) for k, outputs in enumerate(done.outputs[0])] == [
        True,
        True,
    ]
    assert (done.description.name, done.description.resolver) == ("openvino", "precision=f32")
    with pytest.raises(RuntimeFailed, match="bfloat16"):
        by_name("openvino precision=bf16").run([model], [(given,)])


def test_verify_and_record_take_the_name(stand_in: Path, model: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    assert tflq("record", path, "--against", "openvino precision=default", "-o", tmp_path / "g.npz").exit_code == 0
    assert tflq("verify", path, "--golden", tmp_path / "g.npz").exit_code == 1
    (tmp_path / "openvino").write_text("a file of that name hides nothing")
    assert "openvino" in tflq("verify", path, "--against", "openvino").stdout


def test_a_folder_of_answers_belongs_to_one_setting(stand_in: Path, suite: Path, tmp_path: Path) -> None:
    words = ("conform", "run", suite, "--target", "openvino", "--work", tmp_path / "work")
    assert tflq(*words).exit_code == 0
    other = tflq(*words, "--target-option", "precision=default")
    assert (other.exit_code, "another target" in other.stderr) == (2, True)


@pytest.mark.parametrize("option", ["precision", "=x", "precision=", "precision=bf17", "colour=red"])
def test_an_option_that_is_none_is_misuse(option: str, suite: Path) -> None:
    assert tflq("conform", "run", suite, "--target", "openvino", "--target-option", option).exit_code == 2


def test_options_of_a_command_are_its_arguments(suite: Path) -> None:
    target = target_of(f"{sys.executable} -c pass a=b")
    assert isinstance(target, CommandTarget)
    assert target.command[-1] == "a=b"


@pytest.mark.parametrize("name", ["litert-ref", "runtime:litert-ref"])
def test_a_real_runtime_is_a_target(name: str, suite: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    assert package.conform(suite, name).verdict.value == "passes"


def test_a_file_of_golden_is_no_system() -> None:
    assert (suites.ROOT / "golden").is_dir()
    assert not is_named(str(suites.ROOT / "golden"))
