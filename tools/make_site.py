"""Build the documents into a folder of static pages with search.

    pip install 'tflq[site]'
    python tools/make_site.py site/

Needs no network, neither here nor in the reader's browser; pages and search also work from a disk. Broken links and
anchors are errors.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
#: Pages by chapter; those of `how-to/` and `questions/` that no chapter names follow in chapters of their own.
CHAPTERS: dict[str, tuple[str, ...]] = {
    "Start": ("tour.md", "how-to/command-line.md", "pages.md", "glossary.md"),
    "Check": (
        "how-to/continuous-integration.md",
        "conformance.md",
        "targets.md",
        "target-protocol.md",
        "golden-format.md",
        "proof.md",
    ),
    "Make": ("quantize.md", "portable.md", "drop-in.md", "learn.md"),
    "Reference": ("runtimes.md", "scoreboard.md", "xnnpack.md", "faults.md", "operators.md", "numerics.md"),
    "Inside": ("architecture.md", "performance.md", "reliability.md", "scale.md"),
}
#: A link to a page or a file, in Markdown.
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)\s#]+)")


def title(text: str) -> str:
    """Return the first heading of a page."""
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found.group(1) if found else "tflq"


def navigation(pages: dict[str, str]) -> list[Any]:
    """Return the chapters with their pages; every page is in one."""
    named = {name for names in CHAPTERS.values() for name in names}
    missing = sorted(named - set(pages))
    if missing:
        raise SystemExit(f"pages are missing: {', '.join(missing)}")
    rest = sorted(set(pages) - named - {"index.md"}, key=lambda name: title(pages[name]).lower())
    folders = {"How to": "how-to/", "Questions": "questions/"}
    chapters = CHAPTERS | {c: tuple(name for name in rest if name.startswith(at)) for c, at in folders.items()}
    others = tuple(name for name in rest if not name.startswith(tuple(folders.values())))
    if others:
        chapters["More"] = others
    return [{"tflq": "index.md"}, *({c: [{title(pages[n]): n} for n in names]} for c, names in chapters.items())]


def pages_of(root: Path) -> dict[str, str]:
    """Return the text of every page by its path in the site: the documents, and README.md as the first page."""
    docs = root / "docs"
    pages = {path.relative_to(docs).as_posix(): path.read_text(encoding="utf-8") for path in docs.rglob("*.md")}
    for name, file in {"index.md": "README.md", "CONTRIBUTING.md": "CONTRIBUTING.md"}.items():
        text = (root / file).read_text(encoding="utf-8")
        pages[name] = LINK.sub(lambda link: link.group(1).removeprefix("docs/"), text)
    pages["runtimes.md"] = "---\nhide: [toc]\n---\n" + pages["runtimes.md"]  # wide tables
    pages["CHANGELOG.md"] = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    return pages


def configuration(pages: dict[str, str], source: Path, into: Path) -> dict[str, Any]:
    """Return the generator's configuration."""
    schemes = [
        {"media": "(prefers-color-scheme: light)", "scheme": "default", "toggle": _toggle("weather-night", "dark")},
        {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "toggle": _toggle("weather-sunny", "light")},
    ]
    colours = {"primary": "custom", "accent": "custom"}  # site.css has them
    return {
        "site_name": "tflq",
        "docs_dir": str(source),
        "site_dir": str(into),
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,
            "palette": [{**scheme, **colours} for scheme in schemes],
            "features": ["navigation.indexes", "navigation.top", "search.highlight", "content.code.copy", "toc.follow"],
        },
        "plugins": ["search", "offline"],
        "markdown_extensions": [
            "tables",
            "sane_lists",
            {"toc": {"permalink": "#"}},
            "pymdownx.superfences",
            "md_in_html",
        ],
        "extra_css": ["site.css"],
        "extra_javascript": ["matrix.js"],
        "extra": {"polyfills": [SHIM_NAME]},
        "validation": {
            "links": dict.fromkeys(("not_found", "anchors", "absolute_links", "unrecognized_links"), "warn")
        },
        "nav": navigation(pages),
    }


def _toggle(icon: str, name: str) -> dict[str, str]:
    return {"icon": f"material/{icon}", "name": f"Switch to {name} mode"}


#: Browsers start no worker from a disk: there, search runs in a hidden frame with a worker's interface. The plugin
#: would load one from a network unless a script of such a name is given.
SHIM_NAME = "iframe-worker.js"
SHIM = """
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      const inner = frame.contentWindow;
      inner.postMessage = data => setTimeout(() => this.dispatchEvent(new MessageEvent("message", {data})));
      inner.importScripts = (...urls) => urls.reduce((all, one) => all.then(() => added(one)), Promise.resolve());
      const added = source => new Promise((done, failed) => {
        const script = inner.document.createElement("script");
        script.onload = done;
        script.onerror = failed;
        script.src = source;
        inner.document.head.append(script);
      });
      const ready = added(new URL(url, location.href).href);
      this.postMessage = data => ready.then(() => inner.dispatchEvent(new inner.MessageEvent("message", {data})));
    }
  };
}
"""
#: The folder of the site's own style and script.
OWN = Path(__file__).with_name("site")


def build(into: Path, root: Path = ROOT) -> int:
    """Write the site into a folder, and return the generator's exit code."""
    pages = pages_of(root)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "docs"
        for name, text in pages.items():
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for path in (root / "docs").glob("*.svg"):
            (source / path.name).write_bytes(path.read_bytes())
        for name in LINK.findall((root / "README.md").read_text(encoding="utf-8")):
            if not name.startswith("docs/") and Path(name).suffix != ".md" and (root / name).is_file():
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                (source / name).write_bytes((root / name).read_bytes())
        for path in OWN.iterdir():
            (source / path.name).write_bytes(path.read_bytes())
        (source / SHIM_NAME).write_text(SHIM, encoding="utf-8")
        written = Path(folder) / "mkdocs.yml"
        written.write_text(yaml.safe_dump(configuration(pages, source, into.resolve())), encoding="utf-8")
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "-q", "-f", str(written)]
        quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # of a later release of the generator
        return subprocess.run(command, env=quiet, check=False).returncode


def main() -> int:
    """Build the site into the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("into", type=Path, help="folder of the pages; what it holds is replaced")
    args = parser.parse_args()
    if args.into.exists() and any(args.into.iterdir()) and not (args.into / "sitemap.xml").exists():
        print(f"{args.into}: is not empty and no site of this tool", file=sys.stderr)
        return 2
    return build(args.into)


if __name__ == "__main__":
    sys.exit(main())
