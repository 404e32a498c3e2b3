"""Which fields of a text become features, and how: one block of features per field.

--fields title,text  ->  two blocks, each with its own vocabulary
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from longtail.errors import ConfigError, did_you_mean
from longtail.options import Options

Share = Annotated[float, Field(ge=0.0, le=1.0)]
NGrams = tuple[PositiveInt, PositiveInt]


class FieldOptions(Options):
    """One block of features: the n-grams of one column, of words or of letters."""

    column: str = "text"
    """The column to read."""
    otherwise: str | None = None
    """The column to read if the texts lack `column`."""
    otherwise_words: PositiveInt | None = None
    """Read only so many words of `otherwise`: the first words of a text are the best substitute for a title."""
    words: NGrams | None = (1, 1)
    """N-grams of words, shortest and longest; a word is a run of two or more letters, digits or underscores."""
    chars: NGrams | None = None
    """N-grams of letters within words, shortest and longest, instead of words; a word has a blank at either end."""
    weight: PositiveFloat = 1.0
    """Length of this block in a text's row, beside the other blocks."""
    min_df: PositiveInt | Share | Literal["auto"] = "auto"
    """Leave out terms that occur in fewer texts (a count, or a share such as 0.01); `auto` is 2, or 1 where no term
    occurs in two texts."""
    max_df: PositiveInt | Share = 1.0
    """Leave out terms that occur in more texts (a count, or a share such as 0.5)."""
    max_features: PositiveInt | None = None
    """Keep at most this many terms, those that occur most often in all texts together."""
    stop_words: Literal["english", "german"] | tuple[str, ...] | None = None
    """Words to leave out: a packaged list, or words; only for words."""
    sublinear: bool = True
    """Count a term that occurs n times as 1 + log(n)."""
    numbers: bool = False
    """Read every whole number as the same word `0`; only for words."""
    max_words: PositiveInt | None = None
    """Read only so many words of each text."""
    lowercase: bool = True
    """Ignore upper and lower case."""

    @model_validator(mode="before")
    @classmethod
    def _chars_stand_for_words(cls, values: Any) -> Any:
        """Without `words`, `chars` means letters."""
        if isinstance(values, dict) and values.get("chars") is not None and "words" not in values:
            return {**values, "words": None}
        return values

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.words is None) == (self.chars is None):
            raise ValueError("a block must have either words or chars; make two blocks for both")
        if self.ngrams[0] > self.ngrams[1]:
            raise ValueError(f"the shortest n-gram must not be longer than the longest, got {self.ngrams}")
        if self.chars is not None and (self.stop_words is not None or self.numbers):
            raise ValueError("stop_words and numbers are about words, and cannot stand beside chars")
        return self

    def among(self, columns: Collection[str]) -> FieldOptions:
        """Return this block as it reads texts with these columns."""
        if self.column in columns:
            return self
        if self.otherwise is None or self.otherwise not in columns:
            known = ", ".join(columns) or "no columns"
            hint = did_you_mean(self.column, columns)
            raise ConfigError(f"features need the column '{self.column}', the texts have only {known}{hint}")
        limits = [limit for limit in (self.max_words, self.otherwise_words) if limit is not None]
        return self.model_copy(update={"column": self.otherwise, "max_words": min(limits, default=None)})

    @property
    def ngrams(self) -> NGrams:
        """Shortest and longest n-gram, of words or of letters."""
        return self.words or self.chars or (1, 1)

    def __str__(self) -> str:
        kind = "words" if self.words else "chars"
        return f"column '{self.column}', {kind} {self.ngrams[0]}–{self.ngrams[1]}"


class TfidfOptions(Options):
    """How texts become sparse features."""

    blocks: Annotated[tuple[FieldOptions, ...], Field(min_length=1)] = (FieldOptions(),)
    """One block of features after the other; each has its own vocabulary, its own idf, and rows of length `weight`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that texts must have."""
        return tuple(dict.fromkeys(block.otherwise or block.column for block in self.blocks))

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """Further columns that are read if texts have them."""
        preferred = dict.fromkeys(block.column for block in self.blocks if block.otherwise)
        return tuple(column for column in preferred if column not in self.columns)

    def options_for_fields(self, fields: str) -> dict[str, Any]:
        """Return plain options that read these fields (`title,text`) instead, each like the first block."""
        like = self.blocks[0].model_copy(update={"otherwise": None, "otherwise_words": None})
        return {"blocks": [block.plain() for block in blocks_of(fields, like)]}


def blocks_of(fields: str | Sequence[str], like: FieldOptions | None = None) -> tuple[FieldOptions, ...]:
    """Return one block per field, from `title,text` or a list of names; everything else is as in `like`."""
    names = fields.split(",") if isinstance(fields, str) else list(fields)
    names = [name.strip() for name in names]
    if not all(names) or len(set(names)) < len(names) or not names:
        raise ConfigError(f"fields must be different column names, such as title,text; got '{','.join(names)}'")
    return tuple((like or FieldOptions()).model_copy(update={"column": name}) for name in names)


_TITLE = FieldOptions(column="title", otherwise="text", otherwise_words=30)
TITLE_AND_TEXT = TfidfOptions(
    blocks=(
        FieldOptions(),
        _TITLE.model_copy(update={"words": (1, 2)}),
        _TITLE.model_copy(update={"words": None, "chars": (5, 5), "weight": 0.7}),
    )
)
"""All words, and the title (or the first words) once more as pairs of words and as letters."""
