"""Write schemas/conformance_levels.json: the requirements of each level of conformance, frozen under a version.

    python tools/make_levels.py --version 1

A level adds its requirements to those of the levels below it. A released version is never written again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tflq.devices.suites.changes import LEVELS, requirements

PATH = Path(__file__).resolve().parent.parent / "schemas" / "conformance_levels.json"


def document(version: int) -> dict[str, object]:
    """Return the levels as they are generated now."""
    found = list(requirements())
    return {
        "schema": "tflq/conformance-levels/1",
        "version": version,
        "levels": {level: [name for name, own in found if own == level] for level in LEVELS},
    }


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", type=int, required=True)
    PATH.write_text(json.dumps(document(parser.parse_args().version), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
