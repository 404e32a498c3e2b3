from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from longtail.errors import ConfigError, ModelFormatError
from longtail.persist import Folder, write_folder
from longtail.text.pieces import Pieces

WORDS = ["<pad>", "<unk>", "<cls>", "<sep>", "red", "apple", "##s", "stone"]


def a_tokenizer(single: str | None = "<cls> $A <sep>") -> Tokenizer:
    made = Tokenizer(models.WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    if single:
        made.post_processor = processors.TemplateProcessing(single=single, special_tokens=[("<cls>", 2), ("<sep>", 3)])
    return made


def pieces(limit: int = 6, single: str | None = "<cls> $A <sep>") -> Pieces:
    return Pieces(a_tokenizer(single), limit, 0, 2)


def words(ids: Any) -> list[str]:
    return [WORDS[i] for i in ids]


def test_texts_become_pieces_between_marks() -> None:
    (one, two), n_cut = pieces().encode(["red apples", "blue stone"])
    assert words(one) == ["<cls>", "red", "apple", "##s", "<sep>"]
    assert words(two) == ["<cls>", "<unk>", "stone", "<sep>"]
    assert n_cut == 0


def test_a_text_that_is_too_long_is_cut_keeps_its_marks_and_is_counted() -> None:
    given = ["red apple stone red", "red apple stone red red", "red " * 50]
    rows, n_cut = pieces().encode(given)
    assert [len(row) for row in rows] == [6, 6, 6]
    assert n_cut == 2
    assert words(rows[1]) == ["<cls>", "red", "apple", "stone", "red", "<sep>"]


def test_an_empty_text_has_its_marks_or_at_least_one_token() -> None:
    assert words(pieces().encode([""])[0][0]) == ["<cls>", "<sep>"]
    assert pieces(single=None).encode(["", "red"]) == ([[0], [4]], 0)
    assert pieces().encode([]) == ([], 0)


def test_a_tokenizer_that_pads_or_cuts_on_its_own_no_longer_does() -> None:
    own = a_tokenizer()
    own.enable_padding(length=20)
    own.enable_truncation(3)
    made = Pieces(own, 6, 0, 2)
    assert [len(row) for row in made.encode(["red", "red apple stone red"])[0]] == [3, 6]


@pytest.mark.parametrize(
    ("single", "last", "kind"),
    [("<cls> $A <sep>", False, 0), ("$A:0 <sep>:0 <cls>:2", True, 2), ("$A <sep>", False, 0), (None, False, 0)],
)
def test_the_place_of_the_mark_is_read_from_the_tokenizer(single: str | None, last: bool, kind: int) -> None:
    made = pieces(single=single)
    assert made.cls_last == last
    assert made.last_type == kind


def test_a_limit_that_leaves_no_room_for_words_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"tokens\.max_tokens must be above 2 here, got 2"):
        pieces(limit=2)
    assert pieces(limit=3).encode(["red apple"]) == ([[2, 4, 3]], 1)


def test_saved_pieces_read_texts_as_before(tmp_path: Path) -> None:
    made = pieces(single="$A:0 <sep>:0 <cls>:2")
    with write_folder(tmp_path / "p", "test") as writer:
        made.save(writer, "tokeniser")
    opened = Pieces.load(Folder(tmp_path / "p", "test"), "tokeniser")
    texts = ["red apples", "", "red " * 9, "grün apple"]
    assert opened.encode(texts) == made.encode(texts)
    for name in ("max_tokens", "pad_id", "cls_id", "cls_last", "last_type", "n_ids"):
        assert getattr(opened, name) == getattr(made, name)


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    with write_folder(tmp_path / "p", "test") as writer:
        pieces().save(writer, "tokeniser")
        writer.text("tokeniser.json", "{}")
    with pytest.raises(ModelFormatError, match=r"tokeniser.json is damaged"):
        Pieces.load(Folder(tmp_path / "p", "test"), "tokeniser")


def test_a_tokenizer_of_another_encoder_is_refused() -> None:
    pieces().check_fits(len(WORDS), 6)
    with pytest.raises(
        ConfigError, match="ids of tokens must be below 7, which is what the encoder knows, got up to 7"
    ):
        pieces().check_fits(len(WORDS) - 1)
    with pytest.raises(ConfigError, match="max_tokens must be at most 5 for this encoder, got 6"):
        pieces().check_fits(len(WORDS), 5)
