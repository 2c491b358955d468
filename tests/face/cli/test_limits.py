"""--memory-limit and --work-limit of every verb that runs a model or prepares it to be run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support import suites
from support.commands import tflq
from support.graphs import Graph, Op, build
from support.single_op import T
from tflq.face.cli.main import cli

FLOAT = suites.ROOT / "golden" / "models" / "digits_autoencoder_float.tflite"
INT8 = suites.ROOT / "golden" / "models" / "digits_autoencoder_int8.tflite"
CONV = suites.ROOT / "golden" / "singleop" / "models" / "tie_conv_i8_0.tflite"
RECORDED = suites.ROOT / "golden" / "singleop" / "recorded" / "tie_conv_i8_0.npz"

WORDS = {
    "run": f"{CONV}",
    "verify": f"{CONV} --golden {RECORDED}",
    "compare": f"{FLOAT} {INT8} --inputs {{data}}",
    "explain": f"{CONV} --dump {RECORDED}",
    "fit": f"{CONV} --dump {RECORDED}",
    "reduce": f"{CONV} --dump {RECORDED} -o {{out}}",
    "quantize": f"{FLOAT} --calibration {{data}} -o {{out}}",
}
BEYOND = ("the limit of 5", "memory limit leaves")


@pytest.mark.parametrize("verb", [*WORDS, "inspect", "prove"])
def test_verbs_that_prepare_or_run_operators_have_the_limits(verb: str) -> None:
    command = cli.get_command(None, verb)  # type: ignore[arg-type]
    assert command is not None
    assert {"--memory-limit", "--work-limit"} <= {option for p in command.params for option in p.opts}


@pytest.mark.parametrize("verb", WORDS)
@pytest.mark.parametrize("limit", ["memory", "work"])
def test_a_limit_is_kept(verb: str, limit: str, tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", np.zeros((4, 8, 8, 1), np.float32))
    words = [verb, *WORDS[verb].format(data=tmp_path / "data.npy", out=tmp_path / "out").split()]
    result = tflq(*words, f"--{limit}-limit", "5")
    assert result.exit_code in (2, 3), result.output
    assert any(words in result.output for words in BEYOND), result.output
    assert list(tmp_path.iterdir()) == [tmp_path / "data.npy"]


def test_generated_inputs_beyond_the_limit_are_refused_before_they_are_made(tmp_path: Path) -> None:
    x = T("int8", (1 << 30,))
    (tmp_path / "m.tflite").write_bytes(build(Graph([x, x], (0,), (1,), [Op("ABS", (0,), (1,))])))
    result = tflq("run", tmp_path / "m.tflite")
    assert result.exit_code == 2
    assert "to generate 1 samples of the inputs takes" in result.output
    assert "--memory-limit" in result.output


def test_memory_that_the_machine_lacks_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> None:
        raise MemoryError("4 EiB")

    monkeypatch.setattr("tflq.comparison.inputs.read.generate", exhausted)
    result = tflq("run", CONV)
    assert result.exit_code == 2
    assert result.output == "tflq: the inputs takes more memory than this machine has (4 EiB)\n"
