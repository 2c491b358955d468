"""`compare --runtimes`: the figures of each runtime, compared with the outputs of LiteRT's resolvers."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from numpy.typing import NDArray

import tflq
from support import commands, suites
from support.commands import validate
from support.running import as_codes, litert, run_each
from tflq.errors import InputError, InputWarning, TflqError

GOLDEN = suites.ROOT / "golden" / "models"
FLOAT, INT8 = (GOLDEN / f"digits_mobilenet_{kind}.tflite" for kind in ("float", "int8"))
COUNT = 48


def digits() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    found = suites.digits()
    return found.images[:COUNT], found.labels[:COUNT]


@pytest.fixture
def rows(tmp_path: Path) -> tuple[Path, Path]:
    images, labels = digits()
    np.save(tmp_path / "x.npy", images)
    np.save(tmp_path / "y.npy", labels)
    return tmp_path / "x.npy", tmp_path / "y.npy"


def run(*words: object) -> Result:
    return commands.tflq("compare", *words, terminal_width=200)


def litert_codes(resolver: str, images: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return the output codes of LiteRT's resolver of that name, one row a sample."""
    interpreter = litert(INT8.read_bytes(), resolver)
    (given,) = interpreter.get_input_details()
    return np.concatenate(run_each(interpreter, [as_codes(image[None], given) for image in images]))


def test_each_runtime_has_the_figures_of_its_own_bits() -> None:
    images, labels = digits()
    found = tflq.compare(FLOAT, INT8, images, labels, runtimes=["litert-ref", "litert-xnnpack"])
    first, second = found.runtimes
    codes = litert_codes("BUILTIN_REF", images), litert_codes("BUILTIN", images)
    assert (first.differing, first.operators) == (0, ())
    assert second.samples == COUNT
    assert second.elements == codes[0].size
    assert second.differing == np.count_nonzero(codes[0] != codes[1]) > 0
    assert second.changed == np.count_nonzero(codes[0].argmax(1) != codes[1].argmax(1))
    for row, output in zip((first, second), codes, strict=True):
        assert row.comparison is not None
        assert row.comparison.agreement is not None
        assert row.comparison.agreement.accuracies is not None
        assert row.comparison.agreement.accuracies[1] == np.mean(output.argmax(1) == labels)
    assert first.comparison is not None
    assert second.comparison is not None
    assert found.sqnr == first.comparison.sqnr != second.comparison.sqnr
    assert second.operators
    assert all(o.differing[0] for o in second.operators)


def test_the_first_runtime_leads_and_repeated_names_count_once() -> None:
    images, _ = digits()
    found = tflq.compare(FLOAT, INT8, images[:8], runtimes=["litert-xnnpack", "litert-ref", "litert-xnnpack"])
    assert [row.profile for row in found.runtimes] == ["litert-xnnpack", "litert-ref"]
    alone = tflq.compare(FLOAT, INT8, images[:8], runtimes=["litert-xnnpack"])
    assert found.sqnr == alone.sqnr
    assert tflq.compare(FLOAT, INT8, images[:8]).runtimes == ()


def test_the_command_prints_a_row_for_each(rows: tuple[Path, Path], tmp_path: Path) -> None:
    profile = tmp_path / "my.yaml"
    profile.write_text("base: litert-ref\nabout: An NPU.\narithmetic:\n  requantize: single-rounding\n")
    words = (FLOAT, INT8, "--inputs", rows[0], "--labels", rows[1], "--runtimes", f"litert-ref, {profile},tf-1.15-ref")
    result = run(*words, "--html", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    assert "accuracy" in result.output
    assert "refused" in result.output
    assert "tf-1.15-ref does not take the model" in " ".join(result.output.split())
    assert 'id="runtimes"' in (tmp_path / "page.html").read_text()


def test_the_document_has_every_figure(rows: tuple[Path, Path]) -> None:
    words = (FLOAT, INT8, "--inputs", rows[0], "--labels", rows[1], "--json")
    document: dict[str, Any] = json.loads(
        run(*words, "--runtimes", "litert-ref,tflm-cmsis-nn-single,tf-1.15-ref").stdout
    )
    validate(document, "compare")
    first, second, refused = document["runtimes"]
    assert first["accuracy"] == document["comparison"]["agreement"]["accuracy"]["other"]
    assert second["operators"]
    assert refused["sqnr"] is None
    assert "RESIZE_BILINEAR" in refused["error"]
    plain = json.loads(run(*words).stdout)
    validate(plain, "compare")
    assert plain["runtimes"] == []


@pytest.mark.parametrize(
    ("runtimes", "pattern", "code"),
    [
        ("nothing", "nothing", 2),
        ("litert-ref,nothing", "nothing", 2),
        ("", "profile", 2),
        ("litert-ref,missing.yaml", "missing.yaml", 2),
        ("tf-1.15-ref,litert-ref", "RESIZE_BILINEAR", 3),
    ],
)
def test_runtimes_that_cannot_be_are_refused(runtimes: str, pattern: str, code: int, rows: tuple[Path, Path]) -> None:
    result = run(FLOAT, INT8, "--inputs", rows[0], "--runtimes", runtimes)
    assert result.exit_code == code, result.output
    assert re.search(pattern, result.output)


def test_several_models_take_no_runtimes(rows: tuple[Path, Path]) -> None:
    result = run(FLOAT, INT8, INT8, "--inputs", rows[0], "--runtimes", "litert-ref")
    assert result.exit_code == 2
    assert "--runtimes: for one model only" in result.output


def test_labels_and_samples_are_checked_first() -> None:
    images, labels = digits()
    with pytest.raises(InputError, match="labels"):
        tflq.compare(FLOAT, INT8, images, labels[:3], runtimes=["litert-ref", "tflm"])
    with pytest.raises(TflqError):
        tflq.compare(FLOAT, INT8, [], runtimes=["litert-ref", "tflm"])


def test_a_quantized_reference_of_a_float_model_is_doubtful() -> None:
    images, _ = digits()
    codes = [image.astype(np.int8) for image in images[:4]]
    with pytest.warns(InputWarning, match="is the order meant"), suppress(InputError):
        tflq.compare(INT8, FLOAT, codes)
