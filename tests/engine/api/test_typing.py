"""A user's script passes mypy --strict: the package says that it is typed, and its public names have types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tflq

SCRIPT = """
import numpy as np
import tflq

interpreter = tflq.Interpreter("model.tflite", profile="litert-xnnpack")
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.zeros((1, 8, 8, 1), np.int8))
report = tflq.verify("model.tflite", against="litert-ref", tolerances={"CONV_2D": 1})
text: str = report.verdict.value
operators: int = len(tflq.inspect("model.tflite").operators)
changes: int = len(tflq.diff("model.tflite", "other.tflite").changes)
rules: list[str] = [finding.rule for finding in tflq.lint("model.tflite", "tflm").findings]
dump = {"logits": np.zeros((1, 10), np.int8)}
first = tflq.explain("model.tflite", dump).first
index: int = -1 if first is None else first.index
profile: str = tflq.fit("model.tflite", dump).best
element = tflq.reduce("model.tflite", dump).expected[0].item()
apart = tflq.discriminate("model.tflite", dump)
causes: tuple[str, ...] = () if apart is None else apart.causes
word: str = tflq.prove("model.tflite", ["litert-ref", "tflm"]).word.value
touched: list[str] = [d.op for d in tflq.compare_profiles("litert-ref", "tflm")]
changed: list[int] = [o.index for o in tflq.profile_effects("model.tflite").operators if o.effects]
golden = tflq.record("model.tflite", all_tensors=True)
samples: int = len(golden.observations)
made = tflq.quantize("float.tflite", np.zeros((8, 4), np.float32), tflq.Recipe("int8", turns=2), std=2.0)
written: int = made.save("int8.tflite")
decibels: float = tflq.compare("float.tflite", made.model, np.zeros((8, 4), np.float32)).sqnr
outputs = tflq.run_many(made.model, [np.zeros((1, 4), np.float32)], threads=2)
print(outputs[0][0].shape, tflq.save(tflq.load("model.tflite"))[:4])
"""


def test_dir_holds_the_public_names_only() -> None:
    assert dir(tflq) == sorted(tflq.__all__)


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(tflq.__file__).parent / "py.typed").exists()


@pytest.mark.slow
def test_a_users_script_passes_strict_typing(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout
