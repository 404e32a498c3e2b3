"""`longtail methods`, `longtail config`, `longtail info`: what there is, and what is in a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli.flags import Json, MethodName, Model, Settings
from longtail.cli.screen import Screen, in_bytes, write_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

Name = Annotated[str, typer.Argument(metavar="NAME", help="A method or preset (longtail methods).")]
ConfigFile = Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file of options.")]
Verify = Annotated[bool, typer.Option("--verify", help="Check every file against its checksum, however large.")]

SPARK = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 60


def methods(as_json: Json = False) -> None:
    """List the methods and their presets."""
    from longtail.methods.base import METHODS
    from longtail.presets import describe_preset, preset_names

    found = {name: _first_line(METHODS.get(name).__doc__) for name in METHODS.names()}
    found |= {name: describe_preset(name) for name in preset_names()}
    if as_json:
        write_json(found)
        return
    width = max(len(name) for name in found)
    for name in sorted(found):
        typer.echo(f"{name:<{width}}  {found[name]}")


def config_show(name: Name = "linear", settings: Settings = None) -> None:
    """Print all options of a method or preset with their help, as TOML that --config reads."""
    from longtail.cli.source import choose_method
    from longtail.settings import options_toml

    title = f"All options of {name}: longtail train DATA --method {name} --config FILE --out MODEL"
    typer.echo(options_toml(choose_method(name, settings=settings).options, title), nl=False)


def config_check(file: ConfigFile, method: MethodName = "linear", as_json: Json = False) -> None:
    """Check a file of options, and say what it changes."""
    from longtail.cli.source import choose_method
    from longtail.report.contents import changed_options

    changed = changed_options(choose_method(method, file).options.plain(), choose_method(method).options.plain())
    if as_json:
        write_json(changed)
        return
    typer.echo(f"{file} can be used with --method {method}; it changes {len(changed) or 'nothing'}")
    for path, value in changed.items():
        typer.echo(f"  {path} = {value}")


def info(model: Model, verify: Verify = False, as_json: Json = False) -> None:
    """Show what a model is, what it was trained on, and how texts are spread over its clusters."""
    from longtail.methods import load_model
    from longtail.methods.base import MODEL
    from longtail.persist import Folder
    from longtail.report.contents import changed_options

    opened = load_model(model, verify=True if verify else None)
    manifest = Folder(model, MODEL, verify=False).manifest
    described = opened.describe()
    size = sum(int(facts["bytes"]) for facts in manifest["files"].values())
    changed = changed_options(manifest["options"], opened.options_class().plain())
    members = [_member(member) for member in described.get("members", ())]
    if as_json:
        shown = {key: value for key, value in manifest.items() if key != "files"}
        more = {"bytes": size, "n_features": described.get("n_features"), "members": members}
        more["networks"] = described.get("networks", [])
        write_json(shown | more | {"changed_options": changed, "verified": verify})
        return
    facts = opened.facts_
    trained = f"{facts['n_texts']:,} texts" + (f" of {facts['name']}, {facts['split']}" if "name" in facts else "")
    held_out = f", {facts['held_out']['share']:.0%} of it held out" if facts.get("held_out") else ""
    unseen = facts["n_labels_without_texts"]
    rows = {
        "method": opened.name + (f", ensemble of {len(members)}" if len(members) > 1 else ""),
        "labels": f"{facts['n_labels']:,}" + (f" ({unseen:,} more had no text)" if unseen else ""),
        "trained on": trained + held_out,
        "data checksum": facts["fingerprint"][:16],
        "features": f"{described['n_features']:,}" if "n_features" in described else None,
        "reads": ", ".join([*opened.columns, *(f"{name} where there is one" for name in opened.optional_columns)]),
        "size": in_bytes(size) + (", checksums right" if verify else ""),
        "versions": ", ".join(f"{name} {number}" for name, number in manifest["versions"].items()),
        "options": ", ".join(f"{path} = {value}" for path, value in changed.items()) or "all as by default",
    }
    for number, network in enumerate(described.get("networks", ()), 1):
        rows[f"network {number}"] = ", ".join(f"{key} {_plainly(value)}" for key, value in network.items())
    screen = Screen()
    for name, value in rows.items():
        if value is not None:
            screen.paper.print(f"[dim]{name:<14}[/dim]", end="")
            screen.paper.print(value, markup=False)
    if members:
        screen.paper.print("\n[bold]texts per cluster[/bold], fullest cluster first")
    for member, drawn in zip(members, described.get("members", ()), strict=True):
        _draw(screen, member, drawn["texts_per_cluster"])


def _member(member: dict[str, Any]) -> dict[str, Any]:
    """What is told of one member: how evenly its clusters share the texts."""
    texts = member["texts_per_cluster"]
    return {
        "vectors": member["vectors"],
        "seed": member["seed"],
        "n_weights": int(member["n_weights"]),
        "n_clusters": len(texts),
        "texts_per_cluster": _quantiles(texts),
    }


def _quantiles(texts: NDArray[Any]) -> dict[str, float]:
    import numpy as np

    low, quarter, middle, upper, high = np.quantile(texts, [0, 0.25, 0.5, 0.75, 1]).tolist()
    mean = float(texts.mean())
    return {
        "min": low,
        "quarter": quarter,
        "median": middle,
        "three_quarters": upper,
        "max": high,
        "spread": float(texts.std()) / mean if mean else 0.0,
    }


def _draw(screen: Screen, member: dict[str, Any], texts: NDArray[Any]) -> None:
    """X-BERT's figure 1 in one line: how even a label vector's clusters are."""
    import numpy as np

    ordered = np.sort(texts)[::-1]
    columns = np.array([part.mean() for part in np.array_split(ordered, min(SPARK_WIDTH, len(ordered)))])
    heights = np.ceil(columns / max(columns.max(), 1) * len(SPARK)).astype(int).clip(1) - 1
    of = member["texts_per_cluster"]
    screen.paper.print(
        f"[cyan]{''.join(SPARK[height] for height in heights)}[/cyan]  {member['vectors']}, seed {member['seed']}: "
        f"{member['n_clusters']:,} clusters, {of['min']:,.0f} to {of['max']:,.0f} texts, median {of['median']:,.0f}, "
        f"spread {of['spread']:.2f}"
    )


def _plainly(value: Any) -> str:
    """A fact in a few letters."""
    if isinstance(value, int | float):
        return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
    return str(value)


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0]
