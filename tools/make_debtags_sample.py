"""Make the bundled data set `debtags-sample`: descriptions of Debian packages with the tags that people gave them.

From the large set (all tagged packages of one Debian release, split by source package) a small one is taken that may
be passed on, and that a newcomer can read:

1. a text is kept when its description is free under the GNU GPL, version 2 (see `tools/debian_licences.py`);
2. a tag is kept when the data base in Debian's package `debtags` (GPL-2) has it for this package too, and when it
   says something about the software (no `facet::TODO`, no `special::`, no `secteam::`);
3. of a source package at most three texts, of texts with exactly the same tags at most forty (else every fourth
   would be a Perl module), and no text with fewer than two tags; long descriptions are cut;
4. a tag needs three training texts; test texts come from the large set's test part, dev is every tenth source
   package of its train part, chosen by the hash of its name.

    large set + unpacked `debtags` + licence table  ->  train|dev|test.jsonl.zst  labels.txt  hierarchy.tsv
                                                        copyright.tsv.zst  LICENSE*  SOURCE.md

    dpkg -x debtags_*.deb DEBTAGS
    python tools/make_debtags_sample.py SOURCE OUTPUT --debtags DEBTAGS --licences TABLE --gpl2 TEXT_OF_THE_GPL

The same input gives the same data. `copyright.tsv.zst` of an earlier run serves as TABLE.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import zstandard
from debian_licences import read_paragraphs

MAX_WORDS = 100
MIN_TAGS = 2
MIN_TRAINING_TEXTS = 3
MOST_OF_A_SOURCE = 3
MOST_WITH_SAME_TAGS = 40
SILENT_FACETS = {"special", "secteam"}
SPLITS = ("train", "dev", "test")
# Each of these lets its holder use the work under version 2 of the GPL; the LGPLs say so in their section 3.
GPL_2 = re.compile(r"GPL-1(\.0)?(\+|-or-later)|(L?GPL-2(\.0)?|LGPL-2\.1)(\+|-only|-or-later)?", re.IGNORECASE)


@dataclass(frozen=True)
class Licence:
    """One row of the licence table."""

    package: str
    source: str
    version: str
    licence: str
    holders: str


@dataclass(frozen=True)
class Text:
    """One description with its tags."""

    split: str
    licence: Licence
    text: str
    tags: tuple[str, ...]


def is_gpl_2(licence: str) -> bool:
    """Return whether a licence expression (`Artistic or GPL-1+`) lets one choose the GPL, version 2."""
    if "," in licence:
        return False  # a comma changes what `and` and `or` bind; there are few of these
    return any(all(GPL_2.fullmatch(part) for part in choice.split(" and ")) for choice in licence.split(" or "))


def open_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a plain, gzip or zstd file."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    elif path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().stream_reader(data).read()
    yield from data.decode("utf-8").rstrip("\n").split("\n")


def read_licences(path: Path) -> dict[str, Licence]:
    """Return the licences by package, of those that are free under the GPL, version 2."""
    rows = (Licence(*line.split("\t")) for line in open_lines(path))
    return {row.package: row for row in rows if is_gpl_2(row.licence)}


def read_names(vocabulary: Path) -> dict[str, tuple[str, str]]:
    """Return for each tag its name with the facet before it, and without: `User Interface: Web`, `Web`."""
    paragraphs = list(read_paragraphs(vocabulary.read_text("utf-8")))
    short = {p.get("tag") or p["facet"]: p["description"].splitlines()[0] for p in paragraphs if "description" in p}
    return {tag: (f"{short[tag.split('::')[0]]}: {name}", name) for tag, name in short.items() if "::" in tag}


def read_texts(source: Path, debtags: Path, licences: dict[str, Licence], names: Iterable[str]) -> Iterator[Text]:
    """Yield the texts that may be passed on, with the tags that Debian's package has for them too."""
    shipped = dict(line.split(": ", 1) for line in open_lines(debtags / "usr/share/debtags/tags-current.gz"))
    useful = {tag for tag in names if not tag.endswith("::TODO") and tag.split("::")[0] not in SILENT_FACETS}
    for part in ("train", "test"):
        for line in open_lines(source / f"{part}.jsonl.zst"):
            row = json.loads(line)
            package = row["text"].split(" : ")[0]
            known = useful & set(shipped.get(package, "").split(", "))
            tags = tuple(sorted(known.intersection(row["labels"])))
            if package in licences and len(tags) >= MIN_TAGS:
                split = "dev" if part == "train" and _hash(licences[package].source) % 10 == 0 else part
                yield Text(split, licences[package], shorten(row["text"]), tags)


def shorten(text: str) -> str:
    """Return at most `MAX_WORDS` words, cut after a sentence if one ends in the second half."""
    words = text.split()
    if len(words) <= MAX_WORDS:
        return " ".join(words)
    ends = [i for i in range(MAX_WORDS // 2, MAX_WORDS) if words[i].endswith((".", "!", "?")) and len(words[i]) > 1]
    return " ".join(words[: ends[-1] + 1 if ends else MAX_WORDS])


def thin(texts: Iterable[Text], key: Callable[[Text], object], most: int) -> list[Text]:
    """Return at most `most` texts per key: those with the most tags, then by hash of the package name."""
    groups = defaultdict(list)
    for text in texts:
        groups[key(text)].append(text)
    ranked = (sorted(g, key=lambda t: (-len(t.tags), _hash(t.licence.package))) for g in groups.values())
    kept = [text for group in ranked for text in group[:most]]
    return sorted(kept, key=lambda text: text.licence.package)


def drop_rare_tags(texts: list[Text]) -> list[Text]:
    """Return the texts that are left once every tag has enough training texts and every text enough tags."""
    while True:
        counts = Counter(tag for text in texts if text.split == "train" for tag in text.tags)
        kept = [
            replace(text, tags=tuple(tag for tag in text.tags if counts[tag] >= MIN_TRAINING_TEXTS)) for text in texts
        ]
        kept = [text for text in kept if len(text.tags) >= MIN_TAGS]
        if kept == texts:
            return kept
        texts = kept


def write(texts: list[Text], names: dict[str, tuple[str, str]], output: Path) -> None:
    """Write texts, labels, hierarchy and the copyright table."""
    for split in SPLITS:
        rows = ({"text": t.text, "labels": list(t.tags)} for t in texts if t.split == split)
        lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
        write_compressed(output / f"{split}.jsonl.zst", lines)
    tags = sorted({tag for text in texts for tag in text.tags})
    labels = "".join(f"{tag}\t{names[tag][0]}\t{names[tag][1]}\n" for tag in tags)
    (output / "labels.txt").write_text(labels, "utf-8")
    facets = {tag: (tag.split("::")[0], names[tag][0].removesuffix(": " + names[tag][1])) for tag in tags}
    parents = "".join(f"{tag}\t{facet}\t{name}\n" for tag, (facet, name) in facets.items())
    (output / "hierarchy.tsv").write_text(parents, "utf-8")
    write_compressed(output / "copyright.tsv.zst", ("\t".join(astuple(text.licence)) for text in texts))


def write_compressed(path: Path, lines: Iterable[str]) -> None:
    """Write lines as zstd with the strongest compression."""
    data = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(zstandard.ZstdCompressor(level=22, write_checksum=True).compress(data))


def describe(texts: list[Text]) -> dict[str, str]:
    """Return the numbers for SOURCE.md."""
    tags = {tag for text in texts for tag in text.tags}
    facts: dict[str, float | int] = {f"n_{s}": sum(t.split == s for t in texts) for s in SPLITS}
    facts |= {
        "n_texts": len(texts),
        "n_sources": len({t.licence.source for t in texts}),
        "n_labels": len(tags),
        "n_facets": len({tag.split("::")[0] for tag in tags}),
        "labels_per_text": round(sum(len(t.tags) for t in texts) / len(texts), 1),
        "words_per_text": round(sum(len(t.text.split()) for t in texts) / len(texts)),
        "max_words": MAX_WORDS,
    }
    return {name: f"{value:,}" for name, value in facts.items()}


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, help="folder of the large set")
    parser.add_argument("output", type=Path, help="folder to write")
    parser.add_argument("--debtags", type=Path, required=True, help="Debian's package debtags, unpacked by dpkg -x")
    parser.add_argument("--licences", type=Path, required=True, help="table of tools/debian_licences.py")
    parser.add_argument("--gpl2", type=Path, required=True, help="text of the GNU GPL, version 2")
    arguments = parser.parse_args()
    names = read_names(arguments.debtags / "usr/share/debtags/vocabulary")
    texts = list(read_texts(arguments.source, arguments.debtags, read_licences(arguments.licences), names))
    texts = thin(texts, lambda text: text.licence.source, MOST_OF_A_SOURCE)
    # A tag that becomes rare makes more texts alike, and the other way round.
    before: list[Text] = []
    while before != texts:
        before, texts = texts, drop_rare_tags(thin(texts, lambda text: text.tags, MOST_WITH_SAME_TAGS))
    arguments.output.mkdir(parents=True, exist_ok=True)
    write(texts, names, arguments.output)
    shutil.copyfile(arguments.gpl2, arguments.output / "LICENSE")
    shutil.copyfile(arguments.debtags / "usr/share/doc/debtags/copyright", arguments.output / "LICENSE.debtags")
    template = Path(__file__).with_name("debtags_sample_source.md").read_text("utf-8")
    (arguments.output / "SOURCE.md").write_text(template.format(**describe(texts)), "utf-8")


if __name__ == "__main__":
    main()
