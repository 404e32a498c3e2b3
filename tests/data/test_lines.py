import gzip

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from longtail.data.lines import aligned, bare_stem, bare_suffix, first_line, read_blocks, read_lines, read_rows
from longtail.errors import DataError


def lines_of(path, **options):
    return [line for block in read_lines(path, **options) for line in block.lines.to_pylist()]


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.txt", bytes),
        ("a.txt.gz", gzip.compress),
        ("a.txt.zst", zstandard.ZstdCompressor().compress),
    ],
)
def test_files_are_read_plain_and_compressed(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack("eins\nzwölf\n\nlast".encode()))
    assert lines_of(tmp_path / name) == ["eins", "zwölf", "", "last"]


def test_only_line_feeds_end_a_line_and_a_byte_order_mark_is_dropped(tmp_path):
    (tmp_path / "a").write_bytes("\ufeffone\r\nt\rwo\u2028still\x0cstill\nthree\r\n".encode())
    assert lines_of(tmp_path / "a") == ["one", "t\rwo\u2028still\x0cstill", "three"]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff")), min_size=1))
def test_lines_are_numbered_whatever_the_size_of_a_block(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes(("\n".join(texts) + "\n").encode())
    blocks = list(read_lines(path, block_bytes=7))
    assert [line for block in blocks for line in block.lines.to_pylist()] == texts
    for block in blocks:
        assert block.lines.to_pylist() == texts[block.line - 1 : block.line - 1 + len(block.lines)]


def test_a_byte_that_is_not_utf8_is_named_with_line_and_column(tmp_path):
    (tmp_path / "a.txt").write_bytes("gut\nschön \xff".encode("latin-1"))
    with pytest.raises(DataError, match=r"a\.txt:2: column 4: must be UTF-8, got byte 0xf6; .*on_bad_utf8=replace"):
        lines_of(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_bytes("gut\n".encode("utf-16"))
    with pytest.raises(DataError, match="if it is in utf-16: iconv -f utf-16 -t utf-8"):
        lines_of(tmp_path / "b.txt")
    assert lines_of(tmp_path / "a.txt", on_bad_utf8="replace") == ["gut", "sch\ufffdn \ufffd"]


def test_nul_bytes_are_characters_like_others(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a\x00b\n\x00\n")
    assert lines_of(tmp_path / "a.txt") == ["a\x00b", "\x00"]


def test_a_line_longer_than_a_block_comes_whole(tmp_path):
    text = "x" * 5_000_000
    (tmp_path / "a.txt").write_text(f"short\n{text}\nshort\n")
    assert lines_of(tmp_path / "a.txt") == ["short", text, "short"]


def test_a_line_without_end_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("x" * 100)
    with pytest.raises(DataError, match="must be at most 10 bytes"):
        list(read_blocks(tmp_path / "a.txt", max_line_bytes=10))


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b"some text" * 99)[:20])
    (tmp_path / "no.txt.zst").write_bytes(b"not compressed")
    for name in ("cut.txt.gz", "no.txt.zst", "missing.txt"):
        with pytest.raises(DataError, match=f"cannot read .*{name}"):
            lines_of(tmp_path / name)


def test_an_empty_file_has_no_block(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"")
    assert list(read_blocks(tmp_path / "a.txt")) == []
    assert first_line(tmp_path / "a.txt") == ""


def test_rows_skip_blank_lines_and_keep_line_numbers(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\n\n \nc\n")
    assert list(read_rows(tmp_path / "a.tsv")) == [(1, ["a", "b"]), (4, ["c"])]


def test_the_first_line_is_the_first_that_is_not_blank(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\n  \nhere \xff\r\nthere\n")
    assert first_line(tmp_path / "a.txt") == "here \ufffd"
    assert first_line(tmp_path / "missing.txt") == ""


@given(st.integers(0, 30), st.integers(1, 40), st.sampled_from(["", "long " * 5]))
def test_files_are_aligned_line_by_line(tmp_path_factory, n_lines, block_bytes, longer):
    files = [tmp_path_factory.mktemp("aligned") / name for name in ("a", "b")]
    wanted = [(f"a{i}", f"{longer}b{i}") for i in range(n_lines)]
    for file, lines in zip(files, zip(*wanted, strict=True) if wanted else ((), ()), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines))
    pieces = aligned(files, block_bytes=block_bytes)
    pairs = [pair for a, b in pieces for pair in zip(a.to_pylist(), b.to_pylist(), strict=True)]
    assert pairs == wanted


def test_files_of_different_length_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("1\n2\n3\n")
    (tmp_path / "b.txt").write_text("1\n2\n")
    with pytest.raises(DataError, match=r"a\.txt:3: must have as many lines as b\.txt, which ends after 2"):
        list(aligned([tmp_path / "a.txt", tmp_path / "b.txt"]))


def test_names_are_bare_without_suffix_and_compression(tmp_path):
    assert (bare_stem(tmp_path / "train.jsonl.zst"), bare_suffix(tmp_path / "train.jsonl.ZST")) == ("train", ".jsonl")
    assert (bare_stem(tmp_path / "a.b.csv"), bare_suffix(tmp_path / "a.b.csv")) == ("a.b", ".csv")
    assert bare_suffix(tmp_path / "plain") == ""
