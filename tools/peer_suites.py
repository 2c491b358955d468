"""Run other projects' own tests with tflq's interpreter in place of theirs.

    python tools/peer_suites.py SUITE CHECKOUT --python PYTHON [--original] [-- PYTEST ARGUMENTS]

CHECKOUT is a checkout of the suite's repository, PYTHON a Python with its dependencies and pytest, numba, click,
jinja2, pyyaml and rich. Nothing of theirs is changed or copied; the models from LiteRT's build are created in the
checkout. Only tests that create an Interpreter count. `--original` runs the suite unchanged, to find failures without
tflq. docs/drop-in.md has the figures.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Suite:
    """The place of a suite's tests, the package of their interpreter, and that package's own module of it."""

    tests: str
    package: str
    original: str
    alias: str = ""
    models: bool = False


_TENSORFLOW = ("tensorflow", "tensorflow.lite.python.interpreter", "tflite=tensorflow.lite")

SUITES = {
    "ai-edge-quantizer": Suite("ai_edge_quantizer", "ai_edge_litert", "ai_edge_litert.interpreter"),
    "interpreter": Suite("tflite/python/interpreter_test.py", *_TENSORFLOW, models=True),
    "lite_v2": Suite("tflite/python/lite_v2_test.py", *_TENSORFLOW),
    "lite": Suite("tflite/python/lite_test.py", *_TENSORFLOW),
    "debugger": Suite("tflite/tools/optimize/debugging/python/debugger_test.py", *_TENSORFLOW),
}


def main() -> int:
    """Run one suite and print its figures and failures."""
    words = sys.argv[1:]
    own, extra = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--original", action="store_true")
    arguments = parser.parse_args(own)
    suite, checkout = SUITES[arguments.suite], arguments.checkout.resolve()
    python = str(arguments.python.absolute())
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tools"), str(checkout))),
            "PEER_PACKAGE": "" if arguments.original else suite.package,
            "PEER_ORIGINAL": suite.original,
            "PEER_ALIAS": suite.alias,
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        if suite.models:
            subprocess.run([python, str(ROOT / "tools/peers/models.py"), str(checkout)], env=environment, check=True)
        command = [python, "-m", "pytest", "-p", "peers.stand_in", "-q", "--tb=short", f"--junitxml={report}"]
        command += ["-o", "junit_family=xunit1", "-p", "no:cacheprovider", "-o", "python_files=*_test.py"]
        subprocess.run([*command, *extra, suite.tests], cwd=checkout, env=environment, check=False)
        show(report)
    return 0


def show(report: Path) -> None:
    """Print the number of passed tests that create an Interpreter, and every other one with its error."""
    passed, failures, without = 0, [], 0
    for case in ElementTree.parse(report).iter("testcase"):
        made = any(p.get("name") == "interpreter" for p in case.iter("property"))
        trouble = next((child for child in case if child.tag in ("failure", "error")), None)
        if trouble is not None:
            message = (trouble.get("message") or "").strip().splitlines() or [""]
            failures.append((made, f"{case.get('classname')}.{case.get('name')}: {message[0][:200]}"))
        elif next(case.iter("skipped"), None) is None:
            passed += made
            without += not made
    print(f"\n{passed} passed, {sum(made for made, _ in failures)} failed of those that make an Interpreter; ", end="")
    print(f"{without} passed, {sum(not made for made, _ in failures)} failed of the others")
    for made, text in sorted(failures, reverse=True):
        print(f"{'' if made else '(makes no Interpreter) '}{text}")


if __name__ == "__main__":
    sys.exit(main())
