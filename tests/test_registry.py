from __future__ import annotations

import sys
from pathlib import Path

import pytest

from longtail.errors import ConfigError
from longtail.registry import Registry


def test_a_registered_part_is_found_by_its_name() -> None:
    registry: Registry[type] = Registry("method")

    @registry.register("linear")
    class Linear:
        pass

    assert registry.get("linear") is Linear
    assert registry.names() == ["linear"]


def test_an_unknown_name_gets_a_suggestion_and_the_command_that_lists_all() -> None:
    registry: Registry[int] = Registry("method", command="longtail methods")
    registry.register("lightxml")(1)
    with pytest.raises(ConfigError) as caught:
        registry.get("lightxlm")
    assert str(caught.value) == "unknown method 'lightxlm'; did you mean 'lightxml'? (longtail methods)"
    with pytest.raises(ConfigError, match=r"^unknown method 'zzz' \(longtail methods\)$"):
        registry.get("zzz")


def test_the_module_of_a_part_is_imported_only_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lazy_part.py").write_text("import lazy_registry\nlazy_registry.PARTS.register('lazy')(42)\n")
    (tmp_path / "lazy_registry.py").write_text(
        "from longtail.registry import Registry\nPARTS = Registry('part', {'lazy': 'lazy_part'})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import lazy_registry  # type: ignore[import-not-found]

    assert lazy_registry.PARTS.names() == ["lazy"]
    assert "lazy_part" not in sys.modules
    assert lazy_registry.PARTS.get("lazy") == 42
    assert "lazy_part" in sys.modules


def test_a_plug_in_is_found_by_its_entry_point_and_imported_only_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = tmp_path / "plugged-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[longtail.gadgets]\nshiny = plugged_part:PART\n")
    (tmp_path / "plugged_part.py").write_text("PART = 'from outside'\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry: Registry[str] = Registry("gadget")
    assert registry.names() == ["shiny"]
    assert "plugged_part" not in sys.modules
    assert registry.get("shiny") == "from outside"
    with pytest.raises(ConfigError, match=r"^unknown gadget 'shinny'; did you mean 'shiny'\? Known are shiny\.$"):
        registry.get("shinny")
    assert "shiny" in registry
    assert "shinny" not in registry


def test_a_plug_in_that_cannot_be_imported_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = tmp_path / "broken-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[longtail.small_gadgets]\ndull = no_such_module:PART\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry: Registry[str] = Registry("small gadget", {"built-in": "longtail.errors"})
    assert registry.names() == ["built-in", "dull"]
    with pytest.raises(ConfigError, match=r"^small gadget 'dull' cannot be loaded from the plug-in broken: No module"):
        registry.get("dull")
