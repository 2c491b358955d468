"""A real browser without a screen: Debian's Chromium, driven by Selenium, without any network."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: A function body: what is wrong with the layout of the page that is shown.
_LAYOUT = Path(__file__).with_name("layout.js").read_text(encoding="utf-8")
#: Widths of a screen and of a telephone, and both themes.
VIEWS = [(width, theme) for width in (1400, 420) for theme in ("light", "dark")]
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


class Browser:
    """Chromium with one page."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def show(self, address: str, width: int = 1400, theme: str = "light") -> None:
        """Load a page in a window of a width, in a theme; what was logged before is forgotten."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        self.driver.get("about:blank")
        self.complaints()
        self.requests()
        self.driver.get(address)

    def run(self, script: str, *arguments: Any) -> Any:
        """What a function body returns in the page."""
        return self.driver.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """What the console was told since the last question."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that were asked for since the last question."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def layout(self) -> list[str]:
        """What is wrong with the layout: overflow, clipped or overlapping text, contrast below WCAG AA."""
        return sorted({": ".join(found[:2]) + f" ({found[2]})" for found in self.run(_LAYOUT)})

    def unfold(self) -> None:
        """Open everything that is folded."""
        self.run("document.querySelectorAll('details').forEach(folded => { folded.open = true; })")

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG."""
        width, height = self.run("const e = document.documentElement; return [e.clientWidth, e.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 12000), "scale": 1}
        made = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        path.write_bytes(base64.b64decode(made["data"]))

    def nameless(self) -> list[str]:
        """Roles of what a screen reader meets without a name: controls, images, groups that take the focus."""
        self.driver.execute_cdp_cmd("Accessibility.enable", {})
        nodes = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        roles = ("button", "link", "textbox", "searchbox", "combobox", "image", "img", "complementary")
        return [
            node["role"]["value"]
            for node in nodes
            if not node.get("ignored")
            and node.get("role", {}).get("value") in roles
            and not node.get("name", {}).get("value")
        ]


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with a new profile in that folder; skips where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no Chromium and chromedriver are installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Browser(opened)
    finally:
        opened.quit()
