"""`tflq doctor`: the installed runtimes, their profiles, a self-test of tflq on this machine, and code made ahead."""

from __future__ import annotations

import click

from tflq.face.cli.exits import Exit, exit_of_verdict
from tflq.face.cli.options import json_option, limit_options, profile_option, python_option
from tflq.face.cli.output import say, say_document


@click.command("doctor")
@click.argument("models", nargs=-1, metavar="[MODEL]...", type=click.Path())
@click.option(
    "--warm", is_flag=True, help="Instead, compile the code of MODELs and keep it. [default: a sample of all operators]"
)
@click.option("--install", metavar="NAME", help="Instead, install a ready target into an environment of its own.")
@profile_option
@limit_options
@python_option
@json_option
def doctor_command(
    models: tuple[str, ...], warm: bool, install: str | None, profile: str, python: str | None, as_json: bool
) -> int:
    """List the installed runtimes and the profile of each, and run a self-test of a few seconds.

    Attach the output of --json to bug reports. Exit code 1 if the self-test fails, 3 if it could not be made.

    With --warm, later processes start at once: machine code is kept in tflq/machine-code of NUMBA_CACHE_DIR, or of
    your folder of caches.

    With --install, a target such as openvino gets the versions of docs/targets.md; every verb that names it then runs
    it there. The environment lies in tflq/targets of your folder of data, or in TFLQ_TARGETS, and may be deleted.

    \b
    tflq doctor
    tflq doctor --install openvino
    tflq doctor --json
    tflq doctor --warm model.tflite
    NUMBA_CACHE_DIR=/opt/tflq tflq doctor --warm
    """
    from tflq.devices.conformance.doctor import examine
    from tflq.errors import OptionError
    from tflq.face.report.verbs.doctor import doctor_document, doctor_report

    if install is not None:
        if warm or models or python is not None:
            raise OptionError("--install takes nothing beside it")
        return _install(install, as_json=as_json)
    if warm:
        return _warm(models, profile, as_json=as_json)
    if models:
        raise OptionError("a MODEL is for --warm; `tflq inspect MODEL` shows it")
    examination = examine(python)
    if as_json:
        say_document(doctor_document(examination))
    else:
        say(doctor_report(examination))
    return exit_of_verdict("fails" if examination.failing else "passes" if examination.tested else "nothing compared")


def _warm(models: tuple[str, ...], profile: str, *, as_json: bool) -> int:
    from tflq.devices.conformance.doctor import cases
    from tflq.engine.api.warming import warm
    from tflq.face.report.verbs.warm import warm_document, warm_report

    warmed = warm(models or [draft.model() for draft in cases()], profile)
    if as_json:
        say_document(warm_document(warmed))
    else:
        say(warm_report(warmed))
    return Exit.SAME


def _install(name: str, *, as_json: bool) -> int:
    from tflq.engine.runtimes.installing import PINNED, install
    from tflq.face.report.blocks import Next, Report, Verdict

    python = install(name.lower())
    packages = PINNED[name.lower()]
    if as_json:
        say_document(
            {"schema": "tflq/installed/1", "target": name.lower(), "python": python, "packages": list(packages)}
        )
    else:
        target = "litert-ref" if name.lower() == "litert" else name.lower()
        say(
            Report(
                "doctor",
                [
                    Verdict(f"{', '.join(packages)} in {python}", "good", "INSTALLED", name.lower()),
                    Next([f"tflq verify MODEL --against {target}"]),
                ],
            )
        )
    return Exit.SAME
