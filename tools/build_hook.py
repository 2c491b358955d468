"""Put machine code into a wheel while it is built, for hatchling.

TFLQ_MACHINE_CODE chooses: `host` (the default), a part for this machine, the same on every machine of its level; `all`,
for every level; `none`. Without machine code everything works the same: functions are compiled when they are first
called. So no failure ends a build, unless all was asked for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Seconds after which no code is made for `host`.
_LIMIT = 300


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Add `tflq/machine_code/LEVEL.code`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files, before the wheel is put together."""
        chosen = os.environ.get("TFLQ_MACHINE_CODE", "host")
        if version == "editable" or chosen == "none":
            return
        self._made = tempfile.TemporaryDirectory()
        folder = Path(self._made.name)
        command = [sys.executable, str(Path(self.root, "tools/ship_code.py")), "--folder", str(folder)]
        if chosen == "host":
            command += ["--host", "--common"]
        try:
            limit = _LIMIT if chosen == "host" else None
            subprocess.run(command, check=True, timeout=limit, stdin=subprocess.DEVNULL, stdout=sys.stderr)
        except (OSError, subprocess.SubprocessError) as error:
            if chosen == "all":
                raise
            self.app.display_warning(f"no machine code is put into the wheel: {error}")
        for file in sorted(folder.glob("*.code")):
            build_data["force_include"][str(file)] = f"tflq/machine_code/{file.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the files, which the wheel holds now."""
        if made := getattr(self, "_made", None):
            made.cleanup()
