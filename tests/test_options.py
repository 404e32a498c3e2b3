from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, PositiveInt, ValidationError, model_validator

from longtail.errors import ConfigError
from longtail.methods import create_method
from longtail.options import ByKind, Options, help_of, merge
from longtail.registry import Registry


class Inner(Options):
    """A group."""

    beam: PositiveInt = 10
    """How wide."""
    rule: Literal["sum", "max"] = "sum"
    """Which rule,
    told in two lines."""
    limit: PositiveInt | Annotated[float, Field(ge=0, le=1)] | Literal["auto"] = "auto"
    """A union."""


class More(Inner):
    """A group that inherits."""

    share: float = 0.5
    """Between."""


class Outer(Options):
    """Groups in groups."""

    search: Inner = Inner()
    """One group."""
    blocks: tuple[More, ...] = Field((More(),), min_length=1)
    """Several groups."""
    last: More | None = None
    """A group or none."""
    pair: tuple[int, int] = (1, 2)
    """Two numbers."""

    @model_validator(mode="after")
    def _check(self) -> Outer:
        if self.pair[0] > self.pair[1]:
            raise ValueError("the first must not be larger than the second")
        return self


def complaint(values: Any, source: str = "") -> str:
    with pytest.raises(ConfigError) as caught:
        Outer.of(values, source)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class Bag(Options):
    """One kind of a group."""

    kind: Literal["bag"] = "bag"
    width: PositiveInt = 3


class Cup(Options):
    """Another kind."""

    kind: Literal["cup"] = "cup"
    width: PositiveInt = 4
    handles: PositiveInt = 1


class Door(Options):
    """A group whose kind is an option like others."""

    kind: Literal["wood", "glass"] = "wood"
    height: PositiveInt = 2


class Lid(Options):
    """A third kind, which is not registered."""

    kind: Literal["lid"] = "lid"
    height: PositiveInt = 2


class Named:
    """What a registry holds: something with a class of options."""

    def __init__(self, options_class: type[Options]) -> None:
        self.options_class = options_class


GOODS: Registry[Named] = Registry("good")
GOODS.register("bag")(Named(Bag))
GOODS.register("cup")(Named(Cup))


class Stall(Options):
    """Groups whose class is looked up by kind."""

    goods: Annotated[Options, ByKind(GOODS)] = Bag(width=9)
    more: tuple[Annotated[Options, ByKind(GOODS, lid=Lid)], ...] = ()


class Shop(Options):
    """Groups whose defaults are not those of their classes."""

    door: Door = Door(height=5)

    search: Inner = Inner(beam=2, rule="max")
    goods: Annotated[Bag | Cup, Field(discriminator="kind")] = Bag(width=9)
    street: Outer = Outer(search=Inner(beam=5))


def test_a_group_given_in_part_lies_over_the_default_it_has_here() -> None:
    made = Shop.of({"search": {"rule": "sum"}, "goods": {"kind": "bag"}, "street": {"search": {"limit": 3}}})
    assert made.search == Inner(beam=2, rule="sum")
    assert made.goods == Bag(width=9)
    assert made.street.search == Inner(beam=5, limit=3)
    assert Shop(search={"rule": "sum"}).search.beam == 2
    assert Shop.of(made.plain()) == made


def test_a_group_of_another_kind_has_its_own_defaults() -> None:
    assert Shop.of({"goods": {"kind": "cup"}}).goods == Cup()
    assert Shop(goods=Bag()).goods == Bag()  # a whole group is taken as it is
    assert Shop.of({"door": {"kind": "glass"}}).door == Door(kind="glass", height=5)  # which is no other group


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"goods": {"kind": "hat"}}, "goods.kind must be one of 'bag', 'cup', got 'hat'"),
        ({"goods": {"kind": "cup", "widt": 3}}, "unknown option 'goods.widt'; did you mean 'width'?"),
        ({"goods": {"kind": "cup", "handle": 3}}, "unknown option 'goods.handle'; did you mean 'handles'?"),
        ({"goods": {"kind": "bag", "handles": 3}}, "unknown option 'goods.handles'"),
    ],
)
def test_a_fault_of_a_group_of_some_kind_is_told_as_of_that_kind(values: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        Shop.of(values)
    assert str(error.value) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"goods": {"kind": "hat"}}, "goods.kind must be one of 'bag', 'cup', got 'hat'"),
        ({"goods": {"kind": 3}}, "goods.kind must be one of 'bag', 'cup', got '3'"),
        ({"goods": 3}, "goods must be a valid dictionary or object to extract fields from, got 3"),
        ({"more": [{}]}, "more.0.kind must be given, got {}"),
        ({"more": [{"kind": "hat"}]}, "more.0.kind must be one of 'bag', 'cup', 'lid', got 'hat'"),
        (
            {"goods": {"widt": 3}, "more": [{"kind": "cup", "handle": 3, "width": 0}, {"kind": "lid", "height": "x"}]},
            "unknown option 'goods.widt'; did you mean 'width'?; more.0.width must be greater than 0, got 0; "
            "unknown option 'more.0.handle'; did you mean 'handles'?; more.1.height must be a valid integer, got 'x'",
        ),
    ],
)
def test_a_fault_of_a_registered_part_is_told_as_of_that_part(values: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        Stall.of(values)
    assert str(error.value) == expected


def test_options_of_registered_parts_come_back_from_plain_data() -> None:
    stall = Stall.of({"goods": {"kind": "bag"}, "more": [{"kind": "lid", "height": 7}, {"kind": "cup"}]})
    assert (stall.goods, stall.more) == (Bag(width=9), (Lid(height=7), Cup()))
    assert Stall.of(stall.plain()) == stall
    assert Stall(goods=Cup()).goods == Cup()
    assert Stall.of({"goods": {"kind": "cup", "handles": 2}}).goods == Cup(handles=2)


def test_nothing_given_means_the_defaults() -> None:
    assert Outer.of() == Outer.of({}) == Outer()


def test_nested_plain_data_is_read() -> None:
    options = Outer.of({"search": {"beam": 3}, "blocks": [{"share": 1}, {}], "last": {"rule": "max"}, "pair": [3, 4]})
    assert options.search.beam == 3
    assert [block.share for block in options.blocks] == [1.0, 0.5]
    assert options.last is not None
    assert options.last.rule == "max"
    assert options.pair == (3, 4)


def test_options_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Outer().search = Inner()  # type: ignore[misc]


NUMBERS = st.integers(1, 2**62 - 1)


@given(
    st.builds(
        Outer,
        search=st.builds(Inner, beam=NUMBERS, limit=st.one_of(st.just("auto"), st.floats(0, 1), NUMBERS)),
        blocks=st.lists(st.builds(More, share=st.floats(allow_nan=False, allow_infinity=False)), min_size=1).map(tuple),
        last=st.none() | st.builds(More),
    )
)
def test_plain_data_bring_the_options_back(options: Outer) -> None:
    assert Outer.of(options.plain()) == options


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"search": {"beam": 0}}, "search.beam must be greater than 0, got 0"),
        ({"search": {"beam": "5"}}, "search.beam must be a valid integer, got '5'"),
        ({"search": {"beam": 2.0}}, "search.beam must be a valid integer, got 2.0"),
        ({"search": {"beam": True}}, "search.beam must be a valid integer, got True"),
        ({"search": {"rule": "mean"}}, "search.rule must be 'sum' or 'max', got 'mean'"),
        ({"blocks": [{}, {"share": math.inf}]}, "blocks.1.share must be a finite number, got inf"),
        ({"blocks": [{"share": math.nan}]}, "blocks.0.share must be a finite number, got nan"),
        ({"last": {"beam": -1}}, "last.beam must be greater than 0, got -1"),
        ({"pair": [2, 1]}, "the first must not be larger than the second"),
        ({"search": {"bean": 3}}, "unknown option 'search.bean'; did you mean 'beam'?"),
        ({"blocks": [{"shares": 3}]}, "unknown option 'blocks.0.shares'; did you mean 'share'?"),
        ({"last": {"shares": 3}}, "unknown option 'last.shares'; did you mean 'share'?"),
        ({"serach": {}}, "unknown option 'serach'; did you mean 'search'?"),
        ({"zzz": {}}, "unknown option 'zzz'"),
        (
            {"search": {"limit": "some"}},
            "search.limit must be a valid integer, or be a valid number, or be 'auto', got 'some'",
        ),
    ],
)
def test_a_fault_is_named_with_its_path_and_what_was_got(values: dict[str, Any], expected: str) -> None:
    assert complaint(values) == expected


def test_no_items_where_some_are_needed_is_a_fault() -> None:
    assert complaint({"blocks": []}).startswith("blocks must have at least 1 item")


def test_all_faults_are_in_one_message_behind_their_source() -> None:
    values = {"search": {"beam": 0, "rule": "x"}, "blocks": [{"shares": 1}], "pear": [1, 2]}
    assert complaint(values, "config.toml") == (
        "config.toml: search.beam must be greater than 0, got 0; search.rule must be 'sum' or 'max', got 'x'; "
        "unknown option 'blocks.0.shares'; did you mean 'share'?; unknown option 'pear'; did you mean 'pair'?"
    )


def test_help_is_the_docstring_under_each_field_also_of_inherited_ones() -> None:
    assert help_of(More) == {
        "beam": "How wide.",
        "rule": "Which rule, told in two lines.",
        "limit": "A union.",
        "share": "Between.",
    }


nested = st.recursive(
    st.integers(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=6
)
groups = st.dictionaries(st.sampled_from("abc"), nested, max_size=3)


@given(groups, groups, groups)
def test_merging_layer_by_layer_is_merging_all_at_once_and_changes_no_layer(one: Any, two: Any, three: Any) -> None:
    before = repr([one, two, three])
    assert merge(one, two, three) == merge(merge(one, two), three)
    assert merge(one, None, {}) == merge(one, one) == one
    assert repr([one, two, three]) == before


def test_later_layers_win_key_by_key() -> None:
    assert merge({"a": {"x": 1, "y": 2}, "b": [1, 2]}, {"a": {"y": 3}, "b": [9]}) == {"a": {"x": 1, "y": 3}, "b": [9]}
    assert merge({"a": {"x": 1}}, {"a": 5}) == {"a": 5}
    assert merge({"a": 5}, {"a": {"x": 1}}) == {"a": {"x": 1}}


def test_numbers_that_no_machine_counts_to_are_refused() -> None:
    for options in ({"list_length": 10**30}, {"features": {"blocks": [{"words": [1, 2**62]}]}}):
        with pytest.raises(ConfigError, match=r"must be below 2\^62"):
            create_method("linear", options)
