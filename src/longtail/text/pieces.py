"""Word pieces: the tokeniser that a pretrained encoder was trained with.

It is kept as the one JSON file of the `tokenizers` library, so that a saved model needs nothing else to read texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import ConfigError, MissingExtraError, ModelFormatError
from longtail.persist import Folder, FolderWriter
from longtail.text.tokens import ExportedTokeniser

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class Pieces:
    """A fast tokeniser with a limit."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, pad_id: int, cls_id: int | None) -> None:
        self.pad_id, self.cls_id = pad_id, cls_id
        self.n_ids = tokenizer.get_vocab_size(with_added_tokens=True)
        self.highest_id = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=0)
        tokenizer.no_padding()
        tokenizer.no_truncation()
        marks = tokenizer.encode("")  # what stands around every text
        if max_tokens <= len(marks.ids):
            raise ConfigError(f"tokens.max_tokens must be above {len(marks.ids)} here, got {max_tokens}")
        self.max_tokens = max_tokens
        self.cls_last = bool(marks.ids) and cls_id is not None and marks.ids[-1] == cls_id and marks.ids[0] != cls_id
        """Whether the mark whose vector stands for the text is the last token, as in XLNet."""
        self.last_type = marks.type_ids[-1] if marks.ids else 0
        """Token type of the last mark: XLNet's differs from that of the text."""
        around = tokenizer.encode("a")
        self.n_after = int(np.argmin([*reversed(around.special_tokens_mask), 0]))
        """Marks behind every text."""
        self.separator = around.ids[-self.n_after] if self.n_after else None
        """The first of them, which ends a text."""
        tokenizer.enable_truncation(max_tokens)
        self.tokenizer = tokenizer

    def check_fits(self, n_ids: int, limit: int | None = None) -> None:
        """Raise if texts may get ids that an encoder of `n_ids` ids does not know, or more tokens than its `limit`."""
        if not 0 <= self.pad_id < n_ids or self.highest_id >= n_ids:
            raise ConfigError(
                f"ids of tokens must be below {n_ids:,}, which is what the encoder knows, got up to "
                f"{max(self.highest_id, self.pad_id):,}; put the tokenizer beside it that it was trained with"
            )
        if limit is not None and self.max_tokens > limit:
            raise ConfigError(f"tokens.max_tokens must be at most {limit:,} for this encoder, got {self.max_tokens:,}")

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the tokeniser and its limit; equal ones give the same ids."""
        return hashlib.blake2b(f"pieces {self.pad_id} {self.tokenizer.to_str()}".encode()).hexdigest()

    def encode(self, texts: Sequence[str]) -> tuple[list[Sequence[int]], int]:
        """Return the ids of each text, cut to the limit, and how many texts were cut."""
        encoded = self.tokenizer.encode_batch(list(texts))
        return [one.ids or [self.pad_id] for one in encoded], sum(bool(one.overflowing) for one in encoded)

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return where each token of a text begins and ends in it; marks have empty places."""
        return [(int(start), int(end)) for start, end in self.tokenizer.encode(text).offsets] or [(0, 0)]

    def encode_names(self, names: Sequence[str]) -> list[Sequence[int]]:
        """Return the ids of names, without special tokens."""
        return [one.ids for one in self.tokenizer.encode_batch(list(names), add_special_tokens=False)]

    def exported(self) -> ExportedTokeniser:
        """Return the file of the `tokenizers` library, which also holds the limit."""
        facts = {"kind": "tokenizers", "file": "tokenizer.json", "pad_id": self.pad_id}
        return ExportedTokeniser(facts, self.tokenizer.to_str())

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        writer.text(f"{name}.json", self.tokenizer.to_str())
        writer.manifest[name] = {"max_tokens": self.max_tokens, "pad_id": self.pad_id, "cls_id": self.cls_id}

    @classmethod
    def load(cls, folder: Folder, name: str) -> Pieces:
        """Open what `save` wrote."""
        tokenizer_class = _library().Tokenizer
        try:
            tokenizer = tokenizer_class.from_str(folder.text(f"{name}.json"))
        except ModelFormatError:
            raise
        except Exception as error:  # the library raises plain Exceptions
            raise ModelFormatError(f"{folder.path / name}.json is damaged ({error}); save the model again") from error
        return cls(tokenizer, **folder.manifest[name])


def _library() -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise MissingExtraError("word pieces need tokenizers; pip install 'longtail[neural]'") from error
    return tokenizers
