"""`longtail methods`, `longtail config` and `longtail info`: methods, their options, and saved models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli.flags import Json, MethodName, Model, Settings, Verify, with_flags
from longtail.cli.screen import Screen, write_json
from longtail.units import in_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

Everything = Annotated[bool, typer.Option("--all", help="Also options that only ablations change.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A method or preset (longtail methods).")]
ConfigFile = Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file of options.")]

SPARK = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 60


@with_flags
def methods(as_json: Json = False) -> None:
    """List the methods and their presets."""
    from longtail.methods import METHODS
    from longtail.presets import describe_preset, preset_names

    about = {name: METHODS.summary(name) for name in METHODS.names()}
    about |= {name: describe_preset(name) for name in preset_names()}
    if as_json:
        write_json(about)
        return
    width = max(len(name) for name in about)
    for name in sorted(about):
        typer.echo(f"{name:<{width}}  {about[name]}")


@with_flags
def config_show(name: Name = "linear", settings: Settings = None, everything: Everything = False) -> None:
    """Print the options of a method or preset with their help, as TOML that --config reads."""
    from longtail.methods import create_method
    from longtail.settings import options_toml

    options, plain = create_method(name, settings=settings or ()).options, create_method(name).options
    title = f"All options of {name}: longtail train DATA --method {name} --config FILE --out MODEL"
    if not everything:
        title = title.replace(":", ", without those that only ablations change (--all):", 1)
    unless_as = [] if everything else [plain, type(plain)()]
    typer.echo(options_toml(options, title, unless_as=unless_as), nl=False)


@with_flags
def config_check(file: ConfigFile, method: MethodName = "linear", as_json: Json = False) -> None:
    """Check a file of options and print what it changes."""
    from longtail.methods import create_method
    from longtail.report.contents import changed_options

    changed = changed_options(create_method(method, config=file).options.plain(), create_method(method).options.plain())
    if as_json:
        write_json(changed)
        return
    typer.echo(f"{file} can be used with --method {method}; it changes {len(changed) or 'nothing'}")
    for path, value in changed.items():
        typer.echo(f"  {path} = {value}")


@with_flags
def info(model: Model, verify: Verify = False, as_json: Json = False) -> None:
    """Show the method, data, size and options of a model, and how its clusters share the texts."""
    from longtail.methods import load_model
    from longtail.methods.base import MODEL
    from longtail.persist import Folder
    from longtail.report.contents import changed_options

    opened = load_model(model, verify=verify or None)
    manifest = Folder(model, MODEL, verify=False).manifest
    described = opened.describe()
    size = sum(int(facts["bytes"]) for facts in manifest["files"].values())
    changed = changed_options(manifest["options"], opened.options_class().plain())
    members = [_member(member) for member in described.get("members", ())]
    if as_json:
        shown = {key: value for key, value in manifest.items() if key != "files"}
        more = {"bytes": size, "n_features": described.get("n_features"), "members": members}
        more |= {key: described.get(key, []) for key in ("networks", "choice")}
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
            screen.console.print(f"[dim]{name:<14}[/dim]", end="")
            screen.console.print(value, markup=False)
    if described.get("choice"):
        screen.console.print("\n[bold]why this model[/bold]")
    for line in described.get("choice", ()):
        screen.console.print(line, markup=False, soft_wrap=True)
    if members:
        screen.console.print("\n[bold]texts per cluster[/bold], fullest cluster first")
    for member, drawn in zip(members, described.get("members", ()), strict=True):
        _draw(screen, member, drawn["texts_per_cluster"])


def _member(member: dict[str, Any]) -> dict[str, Any]:
    """Return what is shown of a member: its size, and how evenly its clusters share the texts."""
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
    """Draw the texts per cluster in one line, as X-BERT's figure 1 does."""
    import numpy as np

    ordered = np.sort(texts)[::-1]
    columns = np.array([part.mean() for part in np.array_split(ordered, min(SPARK_WIDTH, len(ordered)))])
    heights = np.ceil(columns / max(columns.max(), 1) * len(SPARK)).astype(int).clip(1) - 1
    of = member["texts_per_cluster"]
    screen.console.print(
        f"[cyan]{''.join(SPARK[height] for height in heights)}[/cyan]  {member['vectors']}, seed {member['seed']}: "
        f"{member['n_clusters']:,} clusters, {of['min']:,.0f} to {of['max']:,.0f} texts, median {of['median']:,.0f}, "
        f"spread {of['spread']:.2f}"
    )


def _plainly(value: Any) -> str:
    """Return a value with few digits."""
    if isinstance(value, int | float):
        return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
    return str(value)
