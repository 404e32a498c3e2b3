from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from longtail.errors import DataError
from longtail.review.documents import documents_in, read_apart, read_document

for library in ("pypdfium2", "docx", "lxml"):
    pytest.importorskip(library, reason="needs pip install 'longtail[documents]'")

PAGE = """<!doctype html><html><head><title>A  title</title><style>p {color: red}</style></head><body>
<nav>Home</nav><h1>Größe</h1><p>First <b>bold</b> line<br>second</p><script>alert(1)</script><!-- no --><ul><li>one
</li><li>two</li></ul></body></html>"""
LATIN_1_PAGE = PAGE.replace("<head>", "<head><meta charset=latin-1>").encode("latin-1")
PAGE_TEXT = "Größe\n\nFirst bold line\n\nsecond\n\none\n\ntwo"


def pdf(text: str, title: str = "") -> bytes:
    """A page with a line of text, as small as a PDF can be."""
    stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET"
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        f"<</Length {len(stream)}>>stream\n{stream}\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        f"<</Title({title})>>",
    ]
    body, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    body += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    body += f"trailer<</Size {len(objects) + 1}/Root 1 0 R/Info 6 0 R>>\nstartxref\n{body.index('xref')}\n%%EOF"
    return body.encode("latin-1")


def docx(title: str = "") -> bytes:
    import docx

    document = docx.Document()
    document.core_properties.title = title
    document.add_paragraph("First paragraph")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    document.add_paragraph("Last")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def epub() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", '<container><rootfile full-path="OEBPS/book.opf"/></container>')
        archive.writestr(
            "OEBPS/book.opf",
            "<package xmlns:dc='urn:dc'><metadata><dc:title>A book</dc:title></metadata><manifest>"
            "<item id='b' href='two.xhtml'/><item id='a' href='one.xhtml'/></manifest>"
            "<spine><itemref idref='a'/><itemref idref='b'/></spine></package>",
        )
        for name, text in (("one", "Chapter one"), ("two", "Chapter two")):
            archive.writestr(f"OEBPS/{name}.xhtml", f"<html><body><p>{text}</p></body></html>")
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "fields"),
    [
        ("a.txt", "\ufeffGröße\r\n\r\n\r\nzwei \x07 ".encode(), {"text": "Größe\n\nzwei"}),
        ("a.TXT", "Größe".encode("utf-16"), {"text": "Größe"}),
        ("a.html", PAGE.encode(), {"title": "A title", "text": PAGE_TEXT}),
        ("a.htm", LATIN_1_PAGE, {"title": "A title", "text": PAGE_TEXT}),
        ("a.pdf", pdf("A line of text"), {"text": "A line of text"}),
        ("a.pdf", pdf("A line", "The title"), {"title": "The title", "text": "A line"}),
        ("a.docx", docx("Named"), {"title": "Named", "text": "First paragraph\n\nleft\n\nright\n\nLast"}),
        ("a.epub", epub(), {"title": "A book", "text": "Chapter one\n\nChapter two"}),
    ],
    ids=["txt", "utf-16", "html", "latin-1", "pdf", "pdf-title", "docx", "epub"],
)
def test_a_document_is_its_title_and_its_text(name: str, data: bytes, fields: dict[str, str]) -> None:
    got = read_document(name, data)
    assert {key: " ".join(value.split()) for key, value in got.items()} == {
        key: " ".join(value.split()) for key, value in fields.items()
    }


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.exe", b"MZ", r"must end in \.txt, .*, got 'a\.exe'"),
        ("a.txt", b"Gr\xf6\xdfe", "must be UTF-8, it is not at byte 2"),
        ("a.pdf", b"%PDF-1.4 no more", "cannot read a.pdf as pdf: .*; is the file whole"),
        ("a.pdf", pdf(""), "must hold text, found none; pages that are pictures need OCR first"),
        ("a.docx", b"PK\x03\x04", "cannot read a.docx as docx"),
        ("a.docx", epub(), "cannot read a.docx as docx"),
        ("a.epub", docx(), "cannot read a.epub as epub"),
        ("a.html", b"  ", "must hold text, found none"),
    ],
)
def test_what_cannot_be_read_is_one_line(name: str, data: bytes, words: str) -> None:
    for read in (read_document, read_apart):
        with pytest.raises(DataError, match=words) as caught:
            read(name, data)
        assert "\n" not in str(caught.value)


def test_documents_that_unpack_to_too_much_are_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("big", "w", force_zip64=True) as big:
        for _ in range(501):
            big.write(bytes(1 << 20))
    for name in ("a.docx", "a.epub"):
        with pytest.raises(DataError, match="must unpack to at most 500 MB"):
            read_document(name, out.getvalue())


def test_entities_of_a_document_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    container = (
        f'<!DOCTYPE c [<!ENTITY e SYSTEM "file://{tmp_path}/secret">]><container><rootfile full-path="b.opf">&e;'
        "</rootfile></container>"
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("b.opf", "<p><title>t</title><item id='a' href='a.html'/><itemref idref='a'/></p>")
        archive.writestr("a.html", "<p>text</p>")
    assert read_document("a.epub", out.getvalue()) == {"title": "t", "text": "text"}


def test_a_document_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="must be readable in 0 s, it was not"):
        read_apart("a.txt", b"text", time_limit_s=0.001)


def test_another_process_reads_the_same() -> None:
    assert read_apart("ä.html", PAGE.encode()) == read_document("ä.html", PAGE.encode())


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.html").write_text("<p>two</p>")
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "ignored.png").write_bytes(b"")
    assert list(documents_in(tmp_path)) == [("a.txt", {"text": "one"}), ("b/two.html", {"text": "two"})]
