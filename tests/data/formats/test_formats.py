import pytest

from longtail.data import load_dataset
from longtail.data.formats import FORMATS, find_format
from longtail.errors import ConfigError, DataError
from longtail.options import help_of


@pytest.mark.parametrize(
    ("name", "line", "format"),
    [
        ("a.jsonl", '{"text": "a", "labels": []}', "folder"),
        ("a.csv", "text,labels", "table"),
        ("a.tsv", "text\tlabels", "table"),
        ("a.txt", "__label__x a text", "fasttext"),
        ("a.txt", "10 200 30", "xmc"),
        ("a.txt", "1,2 0:1 7:0.5", "svmlight"),
        ("a.txt", " 0:1 7:0.5", "svmlight"),
        ("a.txt", "1,2\ttext", "xbert"),
        ("a.txt", "x y\ttime 10:30 12:45", "xbert"),
    ],
)
def test_a_format_is_known_by_name_and_first_line(tmp_path, name, line, format):
    (tmp_path / name).write_text(f"{line}\n")
    assert find_format(tmp_path / name) == format


def test_a_named_format_wins_over_the_suffix(tmp_path):
    (tmp_path / "odd.csv").write_text("__label__x a text\n")
    assert load_dataset(tmp_path / "odd.csv", format="fasttext").vocabulary.ids == ["x"]


def test_an_unknown_format_is_refused_with_those_that_exist(tmp_path):
    with pytest.raises(ConfigError, match=r"'fastext'; did you mean 'fasttext'\? Known are folder, table"):
        find_format(tmp_path, "fastext")


def test_what_no_format_fits_is_refused_with_those_that_exist(tmp_path):
    (tmp_path / "a.txt").write_text("just a text\n")
    for path in (tmp_path / "a.txt", tmp_path):
        with pytest.raises(DataError, match=r"cannot tell the format of .* name one of folder, table"):
            find_format(path)


@pytest.mark.parametrize("name", FORMATS.names())
def test_a_format_that_finds_none_of_its_files_says_what_it_needs(tmp_path, name):
    with pytest.raises(DataError, match=r"must hold .*, found none"):
        load_dataset(tmp_path, format=name)


@pytest.mark.parametrize("name", FORMATS.names())
def test_every_option_has_a_help_text(name):
    options = FORMATS.get(name).options
    assert set(help_of(options)) == set(options.model_fields)
