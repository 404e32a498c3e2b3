import sys

import pytest

from longtail.data import load_vocabulary
from longtail.data.skos import read_skos
from longtail.errors import DataError, MissingExtraError

TURTLE = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix gnd: <https://example.org/gnd/> .
gnd:1-2 a skos:Concept ; skos:prefLabel "Hund"@de, "dog"@en-GB, "dog (US)"@en-US ;
  skos:altLabel "Köter"@de, "hound"@en, "cur" ; skos:broader gnd:3 ; skos:notation "A1" .
gnd:3 skos:prefLabel "Tier"@de , "bête"@fr ; skos:narrower gnd:4 ; skos:notation "A" .
gnd:4 a skos:Concept ; skos:prefLabel "plain\\n  name" , "Name"@de ;
  skos:notation "A2" ; skos:broader <https://example.org/elsewhere> .
<https://example.org/set> a skos:Collection .
"""


@pytest.fixture
def thesaurus(tmp_path):
    pytest.importorskip("rdflib")
    (tmp_path / "t.ttl").write_text(TURTLE, encoding="utf-8")
    return tmp_path / "t.ttl"


def test_concepts_have_names_alternatives_and_broader_concepts(thesaurus):
    vocabulary = load_vocabulary(thesaurus)
    base = "https://example.org/gnd/"
    assert vocabulary.ids == [base + "1-2", base + "3", base + "4"]
    assert vocabulary.names == ["dog", "Tier", "plain name"]
    assert vocabulary.alternatives(0) == ["cur", "hound"]
    assert [vocabulary.parents(i) for i in range(3)] == [[base + "3"], [], [base + "3"]]


def test_names_come_in_the_wanted_language_or_the_next_best(thesaurus):
    assert read_skos(thesaurus, language="de").names == ["Hund", "Tier", "Name"]
    assert read_skos(thesaurus, language="fr").names == ["Hund", "bête", "plain name"]
    assert read_skos(thesaurus, language="en-US").names[0] == "dog (US)"
    assert read_skos(thesaurus, language="de").alternatives(0) == ["Köter", "cur"]


RDF = """<?xml version="1.0"?><!DOCTYPE r [{entities}]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">
<skos:Concept rdf:about="{about}1"><skos:prefLabel>{name}</skos:prefLabel></skos:Concept></rdf:RDF>"""
BOMB = '<!ENTITY a "{}">'.format("x" * 99) + "".join(
    f'<!ENTITY {one} "{("&" + other + ";") * 10}">' for other, one in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    "entities",
    [
        BOMB,
        '<!ENTITY g "&#38;g;">',
        '<!ENTITY g "{}">'.format("x" * 301),
        '<!ENTITY g SYSTEM "file:///etc/passwd">',
        '<!ENTITY % p "x"><!ENTITY g "x">',
    ],
)
def test_entities_that_grow_or_read_files_are_refused(tmp_path, entities):
    pytest.importorskip("rdflib")
    (tmp_path / "t.rdf").write_text(RDF.format(entities=entities, about="https://example.org/", name="&g;" * 9))
    with pytest.raises(DataError, match=r"t\.rdf: an entity must stand for at most 300 characters"):
        read_skos(tmp_path / "t.rdf")


def test_half_a_character_is_refused(tmp_path):
    pytest.importorskip("rdflib")
    name = "<http://www.w3.org/2004/02/skos/core#prefLabel>"
    (tmp_path / "t.nt").write_text(f'<http://e/1> {name} "\\ud800dog"@en .\n')
    with pytest.raises(DataError, match=r"t\.nt: .* got half a character"):
        read_skos(tmp_path / "t.nt")


def test_entities_that_abbreviate_addresses_are_read(tmp_path):
    pytest.importorskip("rdflib")
    text = RDF.format(entities='<!ENTITY gnd "https://example.org/gnd/">', about="&gnd;", name="dog")
    (tmp_path / "t.owl").write_text(text)
    assert read_skos(tmp_path / "t.owl").ids == ["https://example.org/gnd/1"]


def test_a_language_that_no_concept_has_a_name_in_is_told(thesaurus, caplog):
    read_skos(thesaurus, language="fi")
    read_skos(thesaurus, language="en-AU")  # a variety will do
    assert [record.getMessage() for record in caplog.records] == [
        "no concept has a name in the language 'fi', so names are in others: de (3), en-gb (1), en-us (1), fr (1); "
        "choose one with `vocabulary.language`"
    ]


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [("prefixed", ["gnd:1-2", "gnd:3", "gnd:4"]), ("local", ["1-2", "3", "4"]), ("notation", ["A", "A1", "A2"])],
)
def test_ids_are_what_the_data_call_them(thesaurus, ids, wanted):
    assert load_vocabulary(thesaurus, ids=ids).ids == wanted


def test_rdf_xml_and_n_triples_give_the_same(thesaurus):
    import rdflib

    graph = rdflib.Graph().parse(str(thesaurus))
    wanted = read_skos(thesaurus).table.to_pydict()
    for suffix, syntax in ((".rdf", "xml"), (".nt", "nt")):
        graph.serialize(str(thesaurus.with_suffix(suffix)), format=syntax, encoding="utf-8")
        assert read_skos(thesaurus.with_suffix(suffix)).table.to_pydict() == wanted


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bad.ttl", "this is no turtle", r"bad\.ttl must be turtle"),
        ("bad.rdf", "<open>", r"bad\.rdf must be xml"),
        ("none.ttl", "<http://a> <http://b> <http://c> .", "must hold SKOS concepts"),
    ],
)
def test_files_without_concepts_are_refused(tmp_path, name, text, message):
    pytest.importorskip("rdflib")
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        load_vocabulary(tmp_path / name)


def test_ids_that_clash_or_lack_are_refused(tmp_path):
    pytest.importorskip("rdflib")
    head = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
    (tmp_path / "t.ttl").write_text(f'{head}<http://a/x> skos:prefLabel "one" . <http://b/x> skos:prefLabel "two" .')
    with pytest.raises(DataError, match="got 'x' twice; choose other ids than 'local'"):
        read_skos(tmp_path / "t.ttl", ids="local")
    with pytest.raises(DataError, match="every concept must have a notation"):
        read_skos(tmp_path / "t.ttl", ids="notation")


def test_without_rdflib_the_exact_install_command_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdflib", None)
    (tmp_path / "t.ttl").write_text(TURTLE, encoding="utf-8")
    with pytest.raises(MissingExtraError, match=r"pip install 'longtail\[skos\]'"):
        load_vocabulary(tmp_path / "t.ttl")
