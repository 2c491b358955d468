"""The report and the document of a package: its sections, and the models among them in brief."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

from tflq.comparison.inspection.operators import Inspection
from tflq.engine.api.packages import Package, Section
from tflq.face.report.blocks import Block, Brief, Fact, Next, Report, Table, Verdict
from tflq.face.report.documents.package import PackageDocument
from tflq.face.report.numbers import bytes_text, counted, short
from tflq.face.report.verbs.inspect.document import inspect_document

_COLUMNS = (("#", ">"), ("name", "="), ("kind", "<"), ("bytes", ">"), ("contents", "<"))


def package_report(package: Package, models: Mapping[int, Inspection] | None = None) -> Report:
    """Build the report of a package; `models` holds the inspection of each model by its section's number."""
    found = models or {}
    text = f"{package.format}, {counted(len(package.sections), 'section')}, {bytes_text(package.size)}"
    blocks: list[Block] = [Verdict(text, "strong", subject=package.path or "package")]
    blocks += [Fact(f"{key}: {value}") for key, value in package.entries.items()]
    blocks.append(Table(_COLUMNS, [_row(section, found) for section in package.sections]))
    place = package.path or "FILE"
    blocks.append(Next([f"tflq inspect {quote(f'{place}:{section.name}')}" for section in package.models]))
    names = ", ".join(section.name for section in package.sections)
    blocks.append(Brief(names, "Next: .sections, .model(name)", f"{place}: {text}"))
    return Report("inspect", blocks, title=f"{place}: tflq inspect")


def _row(section: Section, models: Mapping[int, Inspection]) -> list[str]:
    inspection = models.get(section.number)
    contents = ", ".join(f"{key} {value}" for key, value in section.items.items())
    if inspection is not None:
        contents = f"{counted(len(inspection.operators), 'operator')}, {short(inspection.macs)} MACs"
        refused = len(inspection.unsupported)
        contents += f", {refused} not supported under {inspection.profile}" if refused else ""
    return [str(section.number), section.name, section.kind, f"{section.size:,}", contents]


def package_document(package: Package, models: Mapping[int, Inspection]) -> PackageDocument:
    """Return the document of a package: `schemas/package.schema.json`."""
    return {
        "schema": "tflq/package/1",
        "path": package.path or None,
        "format": package.format,
        "size": package.size,
        "entries": dict(package.entries),
        "sections": [
            {
                "number": section.number,
                "name": section.name,
                "kind": section.kind,
                "size": section.size,
                "items": dict(section.items),
                "model": inspect_document(models[section.number]) if section.number in models else None,
            }
            for section in package.sections
        ],
    }
