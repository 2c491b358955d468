"""Every command in a document is one that the command line takes, whether or not a test executes it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from support import suites
from support.each import each
from tflq.face.cli.main import VERBS, cli

PAGES = [suites.ROOT / "README.md", *sorted((suites.ROOT / "docs").rglob("*.md"))]
#: Names of something else in prose.
OPEN = re.compile(r"\.\.\.|…|\bVERB\b|\[\w|<\w")
#: Verbs without results, which print no document.
SILENT = {"view"}


def commands(text: str) -> Iterator[str]:
    """Yield the commands of a page: lines of blocks, and code in a line of prose or of a table."""
    for block in re.findall(r"^```(?:sh|console|text)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            yield line.strip().removeprefix("$ ")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for code in re.findall(r"`([^`]+)`", prose):
        yield " ".join(code.split()).replace("\\|", "|")


def words_of(command: str) -> list[str] | None:
    """Return the words after `tflq`; None for another program, for prose, and for a part of a command."""
    if not command.startswith("tflq ") or OPEN.search(command):
        return None
    command = re.split(r"\s[|>&;]|\s#|\s2>", command)[0]
    words = shlex.split(command)[1:]
    return words if words and (words[0] in VERBS or words[0].startswith("-")) else None


def parsed(words: list[str]) -> None:
    """Parse a command without running it.

    Raises:
        click.UsageError: There is no such verb or option, or an option is given a wrong value.
    """
    command, name = cli, "tflq"
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        context = click.Context(command, info_name=name)
        found = command.get_command(context, words[0])
        if found is None:
            raise click.UsageError(f"no command {words[0]}")
        command, name, words = found, words[0], words[1:]
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    options |= {"-h", "--help"}
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("--") and option not in options:
            raise click.UsageError(f"no option {option}")
        if re.fullmatch(r"-[a-z]", word) and word not in options:
            raise click.UsageError(f"no option {word}")


def mistakes(page: Path) -> list[str]:
    """Return the commands of a page that the command line refuses."""
    found = []
    for command in commands(page.read_text(encoding="utf-8")):
        words = words_of(command)
        try:
            if words is not None:
                parsed(words)
        except click.UsageError as error:
            found.append(f"{command}: {error.message}")
    return found


@each("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_can_be_given(page: Path) -> None:
    assert mistakes(page) == []


def test_a_false_command_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("`tflq run m.tflite --fast`\n\n```sh\ntflq conform mend x.npz\ntflq run m.tflite  # --no\n```\n")
    assert len(mistakes(page)) == 2


def verbs() -> Iterator[tuple[str, click.Command]]:
    for name in VERBS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        yield name, command


def test_every_verb_takes_the_options_that_the_documents_promise() -> None:
    """README.md: "Every verb except `view` takes `--json`"; command-line.md: `--quiet`, `--watch`."""
    for name, command in verbs():
        group = (
            [command.get_command(click.Context(command), n) for n in command.commands]
            if isinstance(command, click.Group)
            else [command]
        )
        for one in filter(None, group):
            options = {option for parameter in one.params for option in parameter.opts}
            assert ({"--json", "--quiet"} <= options) == (name not in SILENT), (name, one.name)


def test_every_document_has_a_schema() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (suites.ROOT / "tflq" / "face").rglob("*.py")]
    named = {name for text in texts for name in re.findall(r'"tflq/([a-z0-9-]+)/1"', text)}
    assert {name for name in named if not (suites.ROOT / "schemas" / f"{name}.schema.json").is_file()} == set()


def test_every_address_of_the_project_is_the_one_in_pyproject() -> None:
    """Pages can be copied from: one owner, which is the placeholder OWNER everywhere or nowhere."""
    project = (suites.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    urls = project.partition("[project.urls]")[2].partition("\n[")[0]
    (owner,) = set(re.findall(r"https://github\.com/(\w[\w-]*)/tflq\b", urls))
    pages = [*PAGES, suites.ROOT / "CONTRIBUTING.md", *(suites.ROOT / ".github").rglob("*.yml")]
    texts = {page.name: page.read_text(encoding="utf-8") for page in pages}
    address = re.compile(r"(?:github\.com/|uses: )(\w[\w-]*)/tflq\b")
    found = [(name, one) for name, text in texts.items() for one in address.findall(text)]
    assert {one for _, one in found} == {owner}, found
    assert {name for name, _ in found} >= {"continuous-integration.md", "add-tflq-to-pytest.md", "CONTRIBUTING.md"}
    assert (owner == "OWNER") == any(re.search(r"\bOWNER/", text) for text in (*texts.values(), urls))
