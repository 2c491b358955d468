"""`tflq view`: a model and its results in the browser."""

from __future__ import annotations

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, write_html, write_node_data
from tflq.face.cli.options import debug_option, html_option, model_argument, profile_option, signature_option
from tflq.face.cli.output import say, say_error


@click.command("view")
@model_argument
@click.argument("other", required=False, type=click.Path(), metavar="[DUMP|GOLDEN|INT8]")
@profile_option
@signature_option
@click.option(
    "--inputs", "data", metavar="PATH", type=click.Path(), help="Inputs for the comparison of MODEL and INT8."
)
@click.option(
    "--port", default=0, metavar="N", type=click.IntRange(0, 65535), help="Port of the page. [default: a free one]"
)
@click.option("--no-browser", is_flag=True, help="Only print the page's address.")
@html_option
@click.option("--overlay", metavar="FILE", type=click.Path(), help="Also write node data for Model Explorer (JSON).")
@click.option("--once", is_flag=True, help="Write --html and --overlay without serving the page.")
@force_option
@debug_option
def view_command(
    model: str,
    other: str | None,
    profile: str,
    signature: str | None,
    data: str | None,
    port: int,
    no_browser: bool,
    html: str | None,
    overlay: str | None,
    once: bool,
    force: bool,
) -> int:
    """Open a page about MODEL in the browser; it is updated whenever a file changes, until Ctrl-C.

    The page of MODEL alone is that of `inspect`; with a golden file, that of `verify`. With a dump it is that of
    `explain`; with another model that of `diff`, or of `compare` with --inputs. Of several signatures it draws the
    first, or the one that --signature names.

    Only this machine can open the page.

    \b
    tflq view model.tflite
    tflq view model.tflite golden.npz
    tflq view float.tflite int8.tflite --inputs samples.npz
    """
    if once and html is None and overlay is None:
        raise click.UsageError("--once writes --html or --overlay: give one of them")
    check_files([html, overlay], [model, other, data], force=force)
    from tflq.face.report.verbs.view.overlay import overlay as overlay_of
    from tflq.face.report.verbs.view.picture import picture

    def make() -> str:
        drawn = picture(model, other, profile, data, signature)
        if html is not None:
            write_html(html, drawn.page)
        if overlay is not None:
            write_node_data(overlay, overlay_of(drawn.colourings[0]))
        return drawn.page

    if once:
        make()
        return Exit.SAME
    import threading
    import webbrowser

    from tflq.face.report.verbs.view.server import Watched, follow, serve, served_report

    watched = Watched(make, [path for path in (model, other, data) if path is not None], say_error)
    with serve(watched, port) as address:
        say(served_report(address))
        if not no_browser:
            webbrowser.open(address)
        follow(watched, threading.Event())
    return Exit.SAME
