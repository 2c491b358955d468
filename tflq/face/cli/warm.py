"""`tflq warm`: compile the code of models in advance."""

from __future__ import annotations

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.options import json_option, limit_options, profile_option
from tflq.face.cli.output import say, say_document


@click.command("warm")
@click.argument("models", nargs=-1, metavar="[MODEL]...", type=click.Path())
@profile_option
@limit_options
@json_option
def warm_command(models: tuple[str, ...], profile: str, as_json: bool) -> int:
    """Compile the code of MODELs and keep it, so that later processes start at once.

    Machine code is kept in tflq/machine-code of NUMBA_CACHE_DIR, or of your folder of caches. Without MODEL, it is
    compiled for a sample of all operators.

    \b
    tflq warm model.tflite
    NUMBA_CACHE_DIR=/opt/tflq tflq warm
    """
    from tflq.devices.conformance.doctor import cases
    from tflq.engine.api.warming import warm
    from tflq.face.report.verbs.warm import warm_document, warm_report

    warmed = warm(models or [draft.model() for draft in cases()], profile)
    if as_json:
        say_document(warm_document(warmed))
    else:
        say(warm_report(warmed))
    return Exit.SAME
