"""`tflq view`: the page about a model and its results, and node data."""

from __future__ import annotations

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, write_html, write_node_data
from tflq.face.cli.options import (
    debug_option,
    html_option,
    model_argument,
    profile_option,
    signature_option,
    watch_option,
)


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
    from tflq.face.report.verbs.view.overlay import overlay as overlay_of
    from tflq.face.report.verbs.view.picture import picture

    drawn = picture(model, other, profile, data, signature)
    if html is not None:
        write_html(html, drawn.page)
    if overlay is not None:
        write_node_data(overlay, overlay_of(drawn.colourings[0]))
    return Exit.SAME
