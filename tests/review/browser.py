"""A server in a process of its own, and people at its page in a headless Chromium."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="needs pip install playwright")

PATIENCE_MS = 60_000


class Server:
    """`longtail serve` on a port of its own, which can be killed and started again."""

    def __init__(self, model: Path, reviews: Path | None, *flags: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        kept = [] if reviews is None else ["--reviews", str(reviews)]
        self.command = [sys.executable, "-m", "longtail", "serve", str(model), "--port", str(self.port), *kept, *flags]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        assert any(line.strip() == "ready" for line in self.process.stderr), "the server did not start"

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(30)
        if self.process.stderr is not None:
            self.process.stderr.close()


class Desk:
    """A person at the page."""

    def __init__(
        self, browser: Any, url: str, person: str = "ada", *, queue: str = "news", place: str = "", **context: Any
    ) -> None:
        self.context = browser.new_context(**({"locale": "en-GB"} | context))
        self.context.set_default_timeout(PATIENCE_MS)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.goto(f"{url}/{place}?queue={queue}")
        if person:
            self.page.wait_for_selector("dialog[open]")
            self.page.keyboard.type(person)
            self.page.keyboard.press("Enter")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def sees(self, text: str, place: str = "#text") -> None:
        """Wait until a text is shown."""
        playwright.expect(self.page.locator(place)).to_contain_text(text, timeout=PATIENCE_MS)

    def checked(self) -> list[str]:
        return [name.strip() for name in self.page.locator("#list li.checked .label").all_inner_texts()]


TOO_WIDE = """document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
    .filter(one => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll"))
    .map(one => one.outerHTML)"""
SCHEMES = ("light", "dark")
SIZES = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 360, "height": 740}}


def faults_of(page: Any) -> list[Any]:
    """What axe finds, and what is wider than the screen."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
    violations = axe.Axe().run(page, options=rules).response["violations"]
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in violations] + page.evaluate(TOO_WIDE)
