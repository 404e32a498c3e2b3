"""Take the pictures of the desk in docs/pictures: python tools/make_page_pictures.py

Trains a model on the bundled sample, serves it with a queue of its test texts, and drives Debian's chromium. Not
compared by a test: fonts differ between machines.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from longtail.data.load import load_dataset
from longtail.methods import create_method
from longtail.review.adding import Record, add_texts, make_queue
from longtail.review.store import ReviewStore

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
PORT = 8765
DESKTOP, PHONE = {"width": 1180, "height": 740}, {"width": 390, "height": 780}
N_COLOURS = 96


def main() -> None:
    """Take them all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = load_dataset("debtags-sample")
        create_method("linear").fit(data.train).save(folder / "model")
        with ReviewStore.open(folder / "reviews.db") as store:
            queue = make_queue(store, "packages", {"overlap": 0.3})
            add_texts(store, queue, [Record({"text": record["text"]}) for record in data.test[20:60]])
        command = [sys.executable, "-m", "longtail", "serve", str(folder / "model"), "--port", str(PORT)]
        command += ["--reviews", str(folder / "reviews.db"), "--examples", "debtags-sample"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                assert any(line.strip() == "ready" for line in server.stderr or ())
                take_pictures()
            finally:
                server.terminate()


def take_pictures() -> None:
    """Use the page, and take pictures meanwhile."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        ada = begin(browser, "ada", viewport=DESKTOP)
        keep(ada, "desk")
        ada.keyboard.press("?")
        ada.wait_for_selector("#fields mark")
        ada.wait_for_timeout(500)
        keep(ada, "desk-why")
        ada.keyboard.press("?")
        ada.keyboard.press("/")
        ada.keyboard.type("gno", delay=50)
        ada.wait_for_selector("#matches li")
        keep(ada, "desk-add")
        ada.keyboard.press("Enter")
        for number in range(12):
            ada.keyboard.press("Enter")
            ada.wait_for_timeout(400 + 40 * number)
        bob = begin(browser, "bob", viewport=PHONE, color_scheme="dark", locale="de-DE")
        keep(bob, "desk-phone")
        for digit in "2312":
            bob.keyboard.press(digit)
            bob.keyboard.press("Enter")
            bob.wait_for_timeout(500)
        ada.goto(f"http://localhost:{PORT}/dashboard.html")
        ada.wait_for_selector("#charts table")
        keep(ada, "desk-figures")
        ada.goto(f"http://localhost:{PORT}/labels.html")
        ada.wait_for_selector("#query:focus")
        for key in ("gtk", "Enter", "r", "GTK toolkit", "Enter"):
            ada.keyboard.press(key) if key in ("Enter", "r") else ada.keyboard.type(key)
            ada.wait_for_timeout(3000)
        ada.fill("#new-name", "Spelling dictionaries")
        ada.fill("#example-query", "dictionary")
        ada.wait_for_selector("#examples li")
        keep(ada, "desk-labels")
        browser.close()


def begin(browser: Any, person: str, **context: Any) -> Page:
    """Open the page as a person."""
    page = browser.new_context(**context).new_page()
    page.goto(f"http://localhost:{PORT}/")
    page.wait_for_selector("dialog[open]")
    page.fill("#answer", person)
    page.keyboard.press("Enter")
    page.wait_for_selector("#list li")
    page.wait_for_timeout(500)
    return page  # type: ignore[no-any-return]


def keep(page: Page, name: str) -> None:
    """Write a picture with few colours."""
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(N_COLOURS).save(path, optimize=True)


if __name__ == "__main__":
    main()
