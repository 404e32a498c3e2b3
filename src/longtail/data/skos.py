"""Read a vocabulary from SKOS: concepts with preferred and alternative labels and broader concepts.

    thesaurus.ttl | .rdf | .nt   ->   Vocabulary (ids sorted)

The name of a concept is its preferred label in the wanted language; if it has none, a label without a language, then
the one in the first other language, in the order of the tags. Needs rdflib.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias
from xml.parsers import expat

from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError, MissingExtraError
from longtail.notebook import shorten
from longtail.run.log import LOG

if TYPE_CHECKING:
    from rdflib import Graph
    from rdflib.term import Node

SUFFIXES = {
    ".ttl": "turtle", ".turtle": "turtle", ".rdf": "xml", ".xml": "xml", ".owl": "xml", ".nt": "nt", ".ntriples": "nt",
}  # fmt: skip
"""Suffixes, and rdflib's name of their syntax."""
ConceptIds: TypeAlias = Literal["uri", "prefixed", "local", "notation"]
_N_LANGUAGES = 5
_LONGEST_ENTITY = 300
_BLOCK_BYTES = 4096


def read_skos(path: str | Path, language: str = "en", ids: ConceptIds = "uri") -> Vocabulary:
    """Return the concepts of a file.

    Args:
        path: The file.
        language: The language of the names.
        ids: How the data write label ids: the whole `uri`; `prefixed` as the file abbreviates it (`yso:p10`); its
            `local` part (`p10`); or the concept's `notation`.
    """
    return read_release(path, language, ids).vocabulary


@dataclass(frozen=True)
class Release:
    """A vocabulary as it was published, with what it says of concepts that are no longer used."""

    vocabulary: Vocabulary
    """All concepts of the file, those that are no longer used too."""
    replaced: dict[str, str]
    """Concepts that others replace (`dct:isReplacedBy`), by id."""
    deprecated: frozenset[str]
    """Concepts that are no longer used (`owl:deprecated`)."""


def read_release(
    path: str | Path, language: str = "en", ids: Literal["uri", "prefixed", "local", "notation"] = "uri"
) -> Release:
    """Return the concepts of a file, and which of them were replaced or deprecated; arguments as for `read_skos`."""
    graph = _parse(Path(path))
    _check_language(graph, language)
    from rdflib import URIRef
    from rdflib.namespace import DCTERMS, OWL, RDF, SKOS

    concepts = {*graph.subjects(RDF.type, SKOS.Concept), *graph.subjects(SKOS.prefLabel, None)}
    uris = (concept for concept in concepts if isinstance(concept, URIRef))
    id_of: dict[Node, str] = {concept: _label_id(graph, concept, ids) for concept in uris}
    names, alternatives, parents = {}, {}, {}
    for concept, label in id_of.items():
        names[label] = _name(graph.objects(concept, SKOS.prefLabel), language) or label
        alternatives[label] = _in_language(graph.objects(concept, SKOS.altLabel), language)
        broader = {*graph.objects(concept, SKOS.broader), *graph.subjects(SKOS.narrower, concept)}
        parents[label] = sorted({id_of[parent] for parent in broader if parent in id_of})
    if not id_of:
        raise DataError(f"{path} must hold SKOS concepts with preferred labels, found none")
    pairs = graph.subject_objects(DCTERMS.isReplacedBy)
    replaced = {id_of[old]: id_of[new] for old, new in pairs if old in id_of and new in id_of and old != new}
    marked = graph.subject_objects(OWL.deprecated)
    deprecated = frozenset(id_of[old] for old, value in marked if old in id_of and str(value).lower() in ("true", "1"))
    try:
        return Release(Vocabulary.of(sorted(id_of.values()), names, alternatives, parents), replaced, deprecated)
    except DataError as error:
        advice = "" if isinstance(error.__cause__, UnicodeError) else f"; choose other ids than '{ids}'"
        raise DataError(f"{path}: {error}{advice}") from error


def _parse(path: Path) -> Graph:
    try:
        import rdflib
    except ImportError as error:
        raise MissingExtraError(f"reading SKOS ({path}) needs rdflib: pip install 'longtail[skos]'") from error
    syntax = SUFFIXES.get(path.suffix.lower())
    if syntax is None:
        raise DataError(f"a SKOS file must end in {', '.join(SUFFIXES)}, got {path.name}")
    try:
        if syntax == "xml":
            _check_entities(path)
        return rdflib.Graph().parse(str(path.resolve()), format=syntax)  # a whole path is never taken for an address
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # rdflib's parsers have no error class in common
        raise DataError(f"{path} must be {syntax}: {' '.join(str(error).split())}") from error


def _check_entities(path: Path) -> None:
    """Raise if the file declares entities that grow when they are read; the abbreviations that ontologies use do not.

    All declarations stand before the first element, so no more than that is read.
    """
    in_prolog = True

    def check(name: str, is_parameter: bool, value: str | None, *_: str | None) -> None:
        if is_parameter or value is None or "&" in value or len(value) > _LONGEST_ENTITY:
            raise DataError(
                f"{path}: an entity must stand for at most {_LONGEST_ENTITY} characters without further entities, "
                f"'{shorten(name, 40)}' does not; write it out"
            )

    def end(*_: object) -> None:
        nonlocal in_prolog
        in_prolog = False

    parser = expat.ParserCreate()
    parser.EntityDeclHandler, parser.StartElementHandler = check, end
    with open(path, "rb") as stream, suppress(expat.ExpatError):  # rdflib says what is wrong
        while in_prolog and (block := stream.read(_BLOCK_BYTES)):
            parser.Parse(block)


def _check_language(graph: Graph, language: str) -> None:
    """Warn where no concept has a name in the language, but some have one in others."""
    from rdflib.namespace import SKOS

    counts = Counter(_tag(label) for label in graph.objects(None, SKOS.prefLabel))
    if counts[""] < counts.total() and all(_distance(tag, language) > 1 for tag in counts):
        others = ", ".join(f"{tag} ({count:,})" for tag, count in counts.most_common(_N_LANGUAGES + 1) if tag)
        LOG.warning(
            f"no concept has a name in the language '{language}', so names are in others: {others}; choose one with "
            "`vocabulary.language`"
        )


def _label_id(graph: Graph, concept: Node, ids: str) -> str:
    from rdflib.namespace import SKOS

    if ids == "prefixed":
        # rdflib abbreviates only to XML names, which gnd:4026801-9 is not.
        spaces = [(prefix, str(space)) for prefix, space in graph.namespaces() if str(concept).startswith(str(space))]
        prefix, space = max(spaces, key=lambda pair: len(pair[1]), default=("", ""))
        return f"{prefix}:{str(concept).removeprefix(space)}" if space else str(concept)
    if ids == "local":
        return re.split(r"[/#]", str(concept))[-1]
    if ids == "notation":
        notation = min((str(value) for value in graph.objects(concept, SKOS.notation)), default=None)
        if notation is None:
            raise DataError(f"every concept must have a notation, {concept} has none; choose other ids")
        return notation
    return str(concept)


def _name(labels: Iterable[object], language: str) -> str:
    ranked = sorted((_distance(_tag(label), language), _tag(label), _tidy(label)) for label in labels)
    return ranked[0][2] if ranked else ""


def _in_language(labels: Iterable[object], language: str) -> list[str]:
    near = {_tidy(label) for label in labels if _distance(_tag(label), language) < 3}
    return sorted(near - {""})


def _distance(tag: str, language: str) -> int:
    """Return how far a language is from another: 0 the same, 1 a variety of it, 2 no language, 3 another one."""
    if tag == language.lower():
        return 0
    if tag.split("-")[0] == language.lower().split("-")[0]:
        return 1
    return 3 if tag else 2


def _tag(label: object) -> str:
    """Return the language of a label in lower case, empty if it has none."""
    return (getattr(label, "language", None) or "").lower()


def _tidy(label: object) -> str:
    return " ".join(str(label).split())
