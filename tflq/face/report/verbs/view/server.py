"""A page for the browser on this machine, rebuilt when one of its files changes.

The server listens on the loopback interface only, answers only requests that name it so (a foreign page cannot read it
by a name of its own), and only below a path that cannot be guessed.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tflq.face.report.blocks import Report, Text, Verdict
from tflq.face.report.html.page import live

#: Seconds between two looks at the files, and how long a browser's question is held open.
_PERIOD, _PATIENCE = 0.5, 20.0

#: Size and time of change of a file; None if there is none.
_Look = tuple[int, int] | None


class Watched:
    """A page and its files. `version` grows whenever the page is rebuilt."""

    def __init__(self, make: Callable[[], str], paths: Sequence[str], tell: Callable[[str], None]) -> None:
        self._make, self._paths, self._tell = make, paths, tell
        self._seen = self._look()  # before the page, which may be of the files as they are then or later
        self.page = make()
        self.version = 0
        self._changed = threading.Condition()

    def _look(self) -> list[_Look]:
        return [_look(path) for path in self._paths]

    def refresh(self) -> bool:
        """Rebuild the page if a file has changed; keep the old page if a file cannot be read at the moment."""
        state = self._look()
        if state == self._seen:
            return False
        self._seen = state
        try:
            page = self._make()
        except Exception as error:  # half a file: the next change makes it whole
            self._tell(f"not rebuilt: {error}")
            return False
        with self._changed:
            self.page, self.version = page, self.version + 1
            self._changed.notify_all()
        self._tell("rebuilt")
        return True

    def live_page(self) -> str:
        """Return the page with its version, later than which it asks for."""
        with self._changed:
            return live(self.page, self.version)

    def wait(self, version: int, seconds: float) -> bool:
        """Wait until the page is newer than `version`; False if it is not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self.version > version, seconds)


def _look(path: str) -> _Look:
    """Return the size and time of a file, or the sums and the newest time of a whole folder; None without either."""
    with suppress(OSError):
        if os.path.isdir(path):
            files = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
            stats = [os.stat(file) for file in files]
            return sum(s.st_size for s in stats), max((s.st_mtime_ns for s in stats), default=0)
        stat = os.stat(path)
        return stat.st_size, stat.st_mtime_ns
    return None


@contextmanager
def serve(watched: Watched, port: int = 0) -> Iterator[str]:
    """Serve a page as long as the context lasts; gives its address."""
    secret = secrets.token_urlsafe(16)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host = (self.headers.get("Host") or "").rpartition(":")[0]
            place, _, version = self.path.partition("?")
            if host not in ("127.0.0.1", "localhost") or place not in (f"/{secret}/", f"/{secret}/events"):
                self.send_error(404)
            elif place.endswith("/events"):
                self._send("text/event-stream", "")
                while not watched.wait(int(version) if version.isdecimal() else watched.version, _PATIENCE):
                    self._say(": still here\n\n")
                self._say("event: changed\ndata: \n\n")
            else:
                self._send("text/html; charset=utf-8", watched.live_page())

        def _send(self, kind: str, text: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self._say(text)

        def _say(self, text: str) -> None:
            self.wfile.write(text.encode("utf-8", "backslashreplace"))
            self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: requests are no news."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Log nothing: browsers leave when they like."""

    server = Server(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/{secret}/"
    finally:
        server.shutdown()
        server.server_close()


def served_report(address: str) -> Report:
    """Build the report of a page that is served at an address."""
    return Report("view", [Verdict(address), Text("rebuilt when a file changes; Ctrl-C ends", "faint")])


def follow(watched: Watched, stop: threading.Event) -> None:
    """Look at the files again and again until `stop` is set."""
    while not stop.wait(_PERIOD):
        watched.refresh()
