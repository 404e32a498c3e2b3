"""The text of a document: plain text, PDF, Word (.docx), EPUB and HTML.

    read_document("report.pdf", data)     ->  {"title": "…", "text": "…"}; without a title if there is none
    read_apart("report.pdf", data)        ->  the same, in another process with a time limit

Documents come from anywhere, and a parser may crash or never end: a server reads them in a process of their own.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from longtail.data.inputs import TEXT
from longtail.errors import DataError, MissingExtraError

TITLE = "title"
MAX_BYTES = 50 << 20
MAX_UNPACKED_BYTES = 500 << 20
"""Of all files in a Word or EPUB document."""
TIME_LIMIT_S = 30.0
_BLOCKS = (
    *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "figure", "footer"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "ol", "p", "pre", "section", "table", "td"),
    *("th", "tr", "ul"),
)
_NOT_READ = ("script", "style", "noscript", "template", "svg", "nav", "button", "select", "iframe", "object")
_BROKEN_WORD = re.compile("[\u0002\u00ad\ufffe]\\s*")
"""What PDFs have where a word is broken at the end of a line."""


def read_document(name: str, data: bytes) -> dict[str, str]:
    """Return the fields of a document; the suffix of `name` tells what it is."""
    suffix = PurePosixPath(name.lower()).suffix
    if suffix not in READERS:
        raise DataError(f"a document must end in {', '.join(READERS)}, got {name!r:.80}")
    if len(data) > MAX_BYTES:
        raise DataError(f"a document must have at most {MAX_BYTES >> 20} MB, {name} has {len(data) >> 20}; split it")
    try:
        title, text = READERS[suffix](data)
    except (DataError, MissingExtraError):
        raise
    except Exception as error:  # the libraries have no error in common
        raise DataError(f"cannot read {name} as {suffix[1:]}: {_one_line(error)}; is the file whole?") from error
    text = _tidy(text)
    if not text:
        hint = "pages that are pictures need OCR first" if suffix == ".pdf" else "is it empty?"
        raise DataError(f"{name} must hold text, found none; {hint}")
    title = " ".join(title.split())
    return {TITLE: title, TEXT: text} if title else {TEXT: text}


def read_apart(name: str, data: bytes, time_limit_s: float = TIME_LIMIT_S) -> dict[str, str]:
    """Return what `read_document` does; a document that takes longer or crashes is an error."""
    if len(data) > MAX_BYTES:
        return read_document(name, data)  # says what is wrong
    command = [sys.executable, "-m", "longtail.review.documents", name.replace("\0", "")]
    try:
        ended = subprocess.run(command, input=data, capture_output=True, timeout=time_limit_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise DataError(f"{name} must be readable in {time_limit_s:.0f} s, it was not; copy its text") from error
    if ended.returncode:
        raise DataError(f"cannot read {name}: its reader crashed; copy its text")
    answer = json.loads(ended.stdout)
    if "error" in answer:
        raise DataError(answer["error"])
    return dict(answer["fields"])


def documents_in(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the name and the fields of each document in a folder and the folders below it, in the order of names."""
    for path in sorted(path for path in folder.rglob("*") if path.suffix.lower() in READERS and path.is_file()):
        try:
            yield path.relative_to(folder).as_posix(), read_document(path.name, path.read_bytes())
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def _plain(data: bytes) -> tuple[str, str]:
    try:
        return "", data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"plain text must be UTF-8, it is not at byte {error.start}; save it as UTF-8") from error


def _pdf(data: bytes) -> tuple[str, str]:
    pypdfium2 = _need("pypdfium2")
    document = pypdfium2.PdfDocument(data)
    try:
        pages = [page.get_textpage().get_text_bounded() for page in document]
        return document.get_metadata_value("Title") or "", _BROKEN_WORD.sub("", "\n\n".join(pages))
    finally:
        document.close()


def _docx(data: bytes) -> tuple[str, str]:
    docx = _need("docx")
    _unpackable(data)
    document = docx.Document(io.BytesIO(data))
    return document.core_properties.title or "", "\n".join(_word_text(document))


def _word_text(block: Any) -> Iterator[str]:
    for inner in block.iter_inner_content():
        if hasattr(inner, "rows"):
            for row in inner.rows:
                for cell in row.cells:
                    yield from _word_text(cell)
        else:
            yield inner.text


def _epub(data: bytes) -> tuple[str, str]:
    with _unpackable(data) as archive:
        container = _xml(archive.read("META-INF/container.xml"))
        package = PurePosixPath(container.xpath("string(//*[local-name()='rootfile']/@full-path)"))
        book = _xml(archive.read(str(package)))
        files = {item.get("id"): item.get("href") for item in book.xpath("//*[local-name()='item']")}
        chapters = [files[ref] for ref in book.xpath("//*[local-name()='itemref']/@idref") if files.get(ref)]
        names = {str(PurePosixPath(name)): name for name in archive.namelist()}
        texts = [_html(archive.read(names[str(package.parent / chapter)]))[1] for chapter in chapters]
        return book.xpath("string(//*[local-name()='title'])"), "\n\n".join(texts)


def _html(data: bytes) -> tuple[str, str]:
    html = _need("lxml.html")
    try:
        data.decode()
        parser = html.HTMLParser(encoding="utf-8")
    except UnicodeDecodeError:  # the page itself says what it is
        parser = html.HTMLParser()
    if not data.strip():
        return "", ""
    page = html.document_fromstring(data, parser=parser)
    title = page.findtext(".//title") or ""
    for element in [*page.iter(*_NOT_READ, html.etree.Comment), *page.iter("head")]:
        element.drop_tree()
    for element in page.iter(*_BLOCKS):
        element.text, element.tail = f"\n{element.text or ''}", f"\n{element.tail or ''}"
    return title, page.text_content()


READERS: dict[str, Callable[[bytes], tuple[str, str]]] = {
    ".txt": _plain,
    ".md": _plain,
    ".pdf": _pdf,
    ".docx": _docx,
    ".epub": _epub,
    ".html": _html,
    ".htm": _html,
    ".xhtml": _html,
}
"""Readers of title and text, by suffix."""


def _need(library: str) -> Any:
    from importlib import import_module

    try:
        return import_module(library)
    except ImportError as error:
        message = f"reading this document needs {library}: pip install 'longtail[documents]'"
        raise MissingExtraError(message) from error


def _unpackable(data: bytes) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(io.BytesIO(data))
    if sum(entry.file_size for entry in archive.infolist()) > MAX_UNPACKED_BYTES:
        raise DataError(f"a document must unpack to at most {MAX_UNPACKED_BYTES >> 20} MB; copy its text")
    return archive


def _xml(data: bytes) -> Any:
    etree = _need("lxml.etree")
    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))


def _tidy(text: str) -> str:
    """Return a text without control characters, runs of blanks and empty lines in rows."""
    text = re.sub(r"[^\S\n]+", " ", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = "".join(c for c in text if c == "\n" or (c.isprintable() or c == " "))
    return re.sub(r" ?\n ?(\n ?)+", "\n\n", text).strip()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _answer() -> int:
    """Read a document from standard input, and write its fields, or what is wrong with it."""
    try:
        answer: dict[str, Any] = {"fields": read_document(sys.argv[1], sys.stdin.buffer.read())}
    except (DataError, MissingExtraError) as error:
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer))
    return 0


if __name__ == "__main__":
    raise SystemExit(_answer())
