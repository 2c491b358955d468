"""`tflq inspect`, `diff`, `extract` and `view`: look into models.

`tflq inspect`: the contents of a model, and the numbers behind each operator.

`tflq diff`: two models side by side.

`tflq extract`: some operators of a model as a model.

`tflq view`: the page about a model and its results, and node data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tflq.face.cli.answer import (
    Delivery,
    Exit,
    check_files,
    delivery_options,
    drawing_options,
    force_option,
    say_answer,
    write_html,
    write_node_data,
)
from tflq.face.cli.many import each_model, models_argument, only_of_one
from tflq.face.cli.options import (
    debug_option,
    html_option,
    json_option,
    limit_options,
    model_argument,
    profile_option,
    signature_option,
    watch_option,
)

if TYPE_CHECKING:
    from tflq.face.report.several import SummaryRow


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
@limit_options
@delivery_options
def inspect_command(
    models: tuple[str, ...],
    profile: str,
    op: int | None,
    overflow: bool,
    accumulator_bits: int | None,
    signature: str | None,
    out: Delivery,
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
    only_of_one(models, (("--op", op), ("--overflow", overflow), ("--html", out.html)))
    if len(models) > 1:
        return each_model("inspect", models, _COLUMNS, lambda path: _row(path, profile, signature), as_json=out.as_json)
    model = models[0]
    if overflow:
        if out.html is not None:
            raise click.UsageError("--html draws the operators; --overflow has no page")
        return _show_overflow(model, signature, profile, accumulator_bits or 32, out.as_json)
    if op is None and out.html is None and signature is None and _show_package(model, profile, as_json=out.as_json):
        return Exit.SAME
    from tflq.comparison.inspection.operators import inspect
    from tflq.errors import UnknownNameError
    from tflq.face.report.verbs.inspect import inspect_document, inspect_report, operator_report

    out.check()
    inspection = inspect(model, profile, signature)
    if op is not None and not 0 <= op < len(inspection.operators):
        raise UnknownNameError("operator", op, (f"0 to {len(inspection.operators) - 1}",))
    portable = _portable(model) if out.html is not None or (op is None and not out.as_json) else None
    if out.html is not None:
        from tflq.engine.api.files import subject
        from tflq.face.report.graph.drawing import ModelView
        from tflq.face.report.render.html import page_of
        from tflq.model.ir import signed

        view = ModelView(signed(subject(model).model, signature)[0].model, inspection)
        write_html(out.html, page_of(inspect_report(inspection, op, portable), view))
    document = inspect_document(inspection)
    if op is not None:
        document["operators"] = [document["operators"][op]]
    shown = inspect_report(inspection, None, portable) if op is None else operator_report(inspection, op)
    say_answer(shown, lambda: document, as_json=out.as_json)
    return Exit.SAME


def _portable(path: str) -> tuple[int, int]:
    """Return the numbers of integer operators that break no rule of portable models, and of all of them."""
    from tflq.diagnosis.linting.portable import portable_counts
    from tflq.engine.api.files import load

    return portable_counts(load(path))


#: Columns of the summary of several models.
_COLUMNS = (("operators", ">"), ("unsupported", ">"), ("constants", ">"), ("MACs", ">"))


def _row(path: str, profile: str, signature: str | None) -> SummaryRow:
    from tflq.comparison.inspection.operators import inspect
    from tflq.face.report.several import SummaryRow
    from tflq.face.report.verbs.inspect import inspect_document

    inspection = inspect(path, profile, signature)
    missing = sum(len(one.unsupported) for one in inspection.every)
    constants = sum(tensor.bytes for one in inspection.every for tensor in one.tensors)
    word, code = ("unsupported", Exit.UNSUPPORTED) if missing else ("supported", Exit.SAME)
    operators = sum(len(one.operators) for one in inspection.every)
    macs = sum(one.macs for one in inspection.every)
    cells = (str(operators), str(missing or ""), f"{constants:,}", f"{macs:,}")
    return SummaryRow(word, cells, inspect_document(inspection), code)


def _show_package(path: str, profile: str, *, as_json: bool) -> bool:
    """Show the sections of a package of models; return False if the file is not one."""
    from tflq.engine.api.files import package

    found = package(path)
    if found is None:
        return False
    from tflq.comparison.inspection.operators import inspect
    from tflq.face.report.verbs.inspect import package_document, package_report

    models = {section.number: inspect(f"{path}:{section.number}", profile) for section in found.models}
    say_answer(package_report(found, models), lambda: package_document(found, models), as_json=as_json)
    return True


def _show_overflow(model: str, signature: str | None, profile: str, bits: int, as_json: bool) -> int:
    from tflq.comparison.inspection.operators import overflow_bounds
    from tflq.engine.api.files import subject
    from tflq.engine.profiles import by_name
    from tflq.face.report.verbs.inspect import overflow_document, overflow_report

    bounds = overflow_bounds(subject(model).model, by_name(profile), signature)
    say_answer(overflow_report(bounds, bits), lambda: overflow_document(model, profile, bounds, bits), as_json=as_json)
    return Exit.DIFFERS if any(bound.bits > bits for bound in bounds) else Exit.SAME


@click.command("diff")
@click.argument("first", type=click.Path())
@click.argument("second", type=click.Path())
@profile_option
@signature_option
@click.option("--all", "all_changes", is_flag=True, help="List all changes.")
@drawing_options
def diff_command(first: str, second: str, profile: str, signature: str | None, all_changes: bool, out: Delivery) -> int:
    """List how model SECOND differs from model FIRST: operators, options, weights in LSB, scales, derived multipliers.

    Signatures are matched by name. Nothing is run. Exit code 1 if anything differs.

    \b
    tflq diff before.tflite after.tflite
    """
    from tflq.comparison.inspection.model_diff import diff
    from tflq.face.report.graph.drawing import view_of
    from tflq.face.report.verbs.diff import diff_colourings, diff_document, diff_report

    out.check()
    found = diff(first, second, profile, signature)
    drawn = (first, profile, signature)
    return out.give(
        "differs" if found.changes else "same",
        diff_report(found, all_changes=all_changes),
        lambda: diff_document(found),
        drawn,
        lambda: diff_colourings(view_of(*drawn), found),
    )


@click.command("extract")
@model_argument
@click.argument("operators", nargs=-1, required=True, metavar="OPERATOR...")
@click.option("-o", "--output", required=True, metavar="FILE", type=click.Path(), help="The model to write.")
@force_option
@json_option
def extract_command(model: str, operators: tuple[str, ...], output: str, force: bool, as_json: bool) -> int:
    """Write the named operators of MODEL as a model of their own.

    OPERATOR is an index, the name of a tensor that the operator makes, a type (all operators of it), or FIRST..LAST.

    \b
    tflq extract model.tflite 4..6 -o part.tflite
    tflq extract model.tflite CONV_2D -o convolutions.tflite
    """
    from tflq.engine.api.files import save, subject
    from tflq.face.report.verbs.models import extract_document, extract_report
    from tflq.model.surgery.cut import extract

    check_files([output], [model], force=force)
    target = subject(model)
    part, chosen = extract(target.model, operators)
    save(part, output)
    say_answer(
        extract_report(part, chosen, output),
        lambda: extract_document(target.facts, part, chosen, output),
        as_json=as_json,
    )
    return Exit.SAME


@click.command("view")
@model_argument
@click.argument("other", required=False, type=click.Path(), metavar="[DUMP|GOLDEN|INT8]")
@profile_option
@signature_option
@click.option(
    "--inputs", "data", metavar="PATH", type=click.Path(), help="Inputs for the comparison of MODEL and INT8."
)
@html_option
@click.option("--overlay", metavar="FILE", type=click.Path(), help="Write node data for Model Explorer (JSON).")
@force_option
@watch_option
@debug_option
def view_command(
    model: str,
    other: str | None,
    profile: str,
    signature: str | None,
    data: str | None,
    html: str | None,
    overlay: str | None,
    force: bool,
) -> int:
    """Write a page about MODEL, or node data; with --watch again whenever a file has changed, until Ctrl-C.

    The page of MODEL alone is that of `inspect`; with a golden file, that of `verify`. With a dump it is that of
    `explain`; with another model that of `diff`, or of `compare` with --inputs. Of several signatures it draws the
    first, or the one that --signature names.

    \b
    tflq view model.tflite --html page.html
    tflq view model.tflite golden.npz --html page.html --watch
    tflq view float.tflite int8.tflite --inputs samples.npz --html page.html
    """
    if html is None and overlay is None:
        raise click.UsageError("give --html, --overlay or both: the files to write")
    check_files([html, overlay], [model, other, data], force=force)
    from tflq.face.report.verbs.view import overlay as overlay_of
    from tflq.face.report.verbs.view import picture

    drawn = picture(model, other, profile, data, signature)
    if html is not None:
        write_html(html, drawn.page)
    if overlay is not None:
        write_node_data(overlay, overlay_of(drawn.colourings[0]))
    return Exit.SAME
