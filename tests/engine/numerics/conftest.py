from __future__ import annotations

import pytest

from support import vectors as golden_vectors


@pytest.fixture
def vectors(shared):
    """Opens a file of golden vectors; at the end of the test every array of it must have been used."""
    opened = []

    def open_file(name):
        path = shared / "vectors" / name
        assert path.is_file(), f"{path} is missing"
        opened.append(golden_vectors.Vectors(path))
        return opened[-1]

    yield open_file
    for file in opened:
        assert file.unused() == [], f"{file.path.name}: arrays that nothing looked at"


def pytest_terminal_summary(terminalreporter):
    if golden_vectors.ROWS:
        total = sum(golden_vectors.ROWS.values())
        terminalreporter.write_line(f"golden vectors: {total:,} values compared in {len(golden_vectors.ROWS)} files")
        for name, rows in sorted(golden_vectors.ROWS.items()):
            terminalreporter.write_line(f"  {name}: {rows:,}")
