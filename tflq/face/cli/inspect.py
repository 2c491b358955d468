"""`tflq inspect`: the contents of a model, and the numbers behind each operator."""

from __future__ import annotations

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, write_html
from tflq.face.cli.options import html_option, json_option, limit_options, profile_option, signature_option
from tflq.face.cli.output import say, say_document
from tflq.face.cli.several import Found, each_model, models_argument, only_of_one


@click.command("inspect")
@models_argument
@profile_option
@click.option("--op", type=int, metavar="N", help="Everything about operator N.")
@click.option("--overflow", is_flag=True, help="Bound every accumulator by the weights and the range of the input.")
@click.option(
    "--accumulator-bits",
    metavar="N",
    type=click.IntRange(1, 64),
    help="Width of the accumulators, for --overflow. [default: 32]",
)
@signature_option
@html_option
@force_option
@limit_options
@json_option
def inspect_command(
    models: tuple[str, ...],
    profile: str,
    op: int | None,
    overflow: bool,
    accumulator_bits: int | None,
    signature: str | None,
    html: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Show MODEL's operators: real multiplier, Q31 multiplier and shift, zero points, clamp, MACs.

    Nothing is run. All signatures are shown, and the subgraphs that their operators run; --op and --html show the
    first signature unless --signature names another. A LiteRT-LM package (.litertlm, .task) lists its sections;
    FILE:SECTION is one of its models, for every command. An operator that the profile does not support is listed with
    the reason. Several models get a row each, and exit code 3 if the profile does not support one of them.

    \b
    tflq inspect model.tflite
    tflq inspect models/*.tflite --profile tflm
    tflq inspect model.tflite --op 4
    tflq inspect model.tflite --overflow --accumulator-bits 24
    """
    overflow = overflow or accumulator_bits is not None
    only_of_one(models, (("--op", op), ("--overflow", overflow), ("--html", html)))
    if len(models) > 1:
        return each_model("inspect", models, _COLUMNS, lambda path: _row(path, profile, signature), as_json=as_json)
    model = models[0]
    if overflow:
        if html is not None:
            raise click.UsageError("--html draws the operators; --overflow has no page")
        return _show_overflow(model, signature, profile, accumulator_bits or 32, as_json)
    if op is None and html is None and signature is None and _show_package(model, profile, as_json=as_json):
        return Exit.SAME
    from tflq.comparison.inspection.operators import inspect
    from tflq.errors import UnknownNameError
    from tflq.face.report.verbs.inspect.report import inspect_report, operator_report

    check_files([html], [model], force=force)
    inspection = inspect(model, profile, signature)
    if op is not None and not 0 <= op < len(inspection.operators):
        raise UnknownNameError("operator", op, (f"0 to {len(inspection.operators) - 1}",))
    portable = _portable(model) if html is not None or (op is None and not as_json) else None
    if html is not None:
        from tflq.engine.api.subject import subject
        from tflq.face.report.graph.standard import ModelView
        from tflq.face.report.render.html import page_of
        from tflq.model.ir import signed

        view = ModelView(signed(subject(model).model, signature)[0].model, inspection)
        write_html(html, page_of(inspect_report(inspection, op, portable), view))
    if as_json:
        from tflq.face.report.verbs.inspect.document import inspect_document

        document = inspect_document(inspection)
        if op is not None:
            document["operators"] = [document["operators"][op]]
        say_document(document)
    else:
        say(inspect_report(inspection, None, portable) if op is None else operator_report(inspection, op))
    return Exit.SAME


def _portable(path: str) -> tuple[int, int]:
    """Return the numbers of integer operators that break no rule of portable models, and of all of them."""
    from tflq.diagnosis.linting.portable import portable_counts
    from tflq.engine.api.files import load

    return portable_counts(load(path))


#: Columns of the summary of several models.
_COLUMNS = (("operators", ">"), ("unsupported", ">"), ("constants", ">"), ("MACs", ">"))


def _row(path: str, profile: str, signature: str | None) -> Found:
    from tflq.comparison.inspection.operators import inspect
    from tflq.face.report.verbs.inspect.document import inspect_document

    inspection = inspect(path, profile, signature)
    missing = sum(len(one.unsupported) for one in inspection.every)
    constants = sum(tensor.bytes for one in inspection.every for tensor in one.tensors)
    word, code = ("unsupported", Exit.UNSUPPORTED) if missing else ("supported", Exit.SAME)
    operators = sum(len(one.operators) for one in inspection.every)
    macs = sum(one.macs for one in inspection.every)
    cells = (str(operators), str(missing or ""), f"{constants:,}", f"{macs:,}")
    return word, cells, inspect_document(inspection), code


def _show_package(path: str, profile: str, *, as_json: bool) -> bool:
    """Show the sections of a package of models; return False if the file is not one."""
    from tflq.engine.api.files import package

    found = package(path)
    if found is None:
        return False
    from tflq.comparison.inspection.operators import inspect
    from tflq.face.report.verbs.inspect.package import package_document, package_report

    models = {section.number: inspect(f"{path}:{section.number}", profile) for section in found.models}
    if as_json:
        say_document(package_document(found, models))
    else:
        say(package_report(found, models))
    return True


def _show_overflow(model: str, signature: str | None, profile: str, bits: int, as_json: bool) -> int:
    from tflq.comparison.inspection.overflow import overflow_bounds
    from tflq.engine.api.subject import subject
    from tflq.engine.profiles import by_name
    from tflq.face.report.verbs.overflow import overflow_document, overflow_report

    bounds = overflow_bounds(subject(model).model, by_name(profile), signature)
    if as_json:
        say_document(overflow_document(model, profile, bounds, bits))
    else:
        say(overflow_report(bounds, bits))
    return Exit.DIFFERS if any(bound.bits > bits for bound in bounds) else Exit.SAME
