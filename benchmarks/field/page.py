"""The page of the comparison: tables and the picture."""

from __future__ import annotations

import datetime
import platform
import subprocess
from collections.abc import Collection
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd

from .fits import HERE, ROOT, Limits, Method
from .ranks import NOISE, compared, main_values
from .tasks import speed

BEGIN, END = "<!-- benchmark: begin -->", "<!-- benchmark: end -->"
PAGE, PICTURE = ROOT / "docs" / "field.md", ROOT / "docs" / "images" / "field.png"
BESIDE = ("noise", "speed")
BLUE = "#1f5fa8"
OURS = ("numpy", "scipy", "scikit-learn", "netbic")
VERSION = (
    "import sys; from importlib.metadata import version; print(*(f'{n} {version(n)}' for n in sys.argv[1:]), sep=', ')"
)


# Tables


def number(value: float, sign: str = "") -> str:
    return "" if np.isnan(value) else f"{value + 0.0:{sign}.3g}"


def task_table(task: ModuleType, table: pd.DataFrame, variants: Collection[str] = ()) -> pd.DataFrame:
    """What the page shows of a task, a row per method: those that are compared, then others."""
    shown, difference = getattr(task, "SHOWN", float), getattr(task, "DIFFERENCE", "difference to the first")
    sign = "+" if difference.startswith("difference") else ""
    others = table[table["figure"] != task.FIGURE].groupby(["method", "figure"], sort=False)["value"].mean()
    main = table[table["figure"] == task.FIGURE]
    counts = pd.crosstab(main["method"], main["status"])
    rows = {}
    for method, row in compared(main_values(table, task), variants).iterrows():
        low, high = sorted([shown(row["low"]), shown(row["high"])])
        rows[method] = {
            task.FIGURE: number(shown(row["mean"])),
            difference: "first" if row["is_first"] else number(shown(row["difference"]), sign),
            "95 % interval": "" if row["is_first"] or np.isnan(low) else f"{number(low, sign)} to {number(high, sign)}",
            "within noise": "" if row["is_first"] else verdict(row),
            "mean rank": "variant" if np.isnan(row["rank"]) else f"{row['rank']:.1f}",
        }
        own = others[others.index.get_level_values("method") == method].droplevel("method")
        rows[method] |= {figure: number(shown(value)) for figure, value in own.items()}
        rows[method]["units"] = units_text(counts.loc[method])
    for method in others.index.get_level_values("method").unique().difference(list(rows)):
        rows[method] = {figure: number(shown(value)) for figure, value in others[method].items()}
    return pd.DataFrame(rows).T.fillna("").rename_axis("method")


def verdict(row: pd.Series) -> str:
    if np.isnan(row["low"]):
        return "too few data"
    return "yes" if row["noise"] else "no"


def units_text(counts: pd.Series) -> str:
    """Number of finished units, and of others by status."""
    rest = [f"{number} {status}" for status, number in counts.items() if number and status != "done"]
    return ", ".join([str(counts.get("done", 0)), *rest])


def markdown(table: pd.DataFrame) -> str:
    table = table.reset_index()
    lines = [table.columns, ["---"] + ["---:"] * (table.shape[1] - 1), *table.astype(str).to_numpy()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def not_finished(fits: pd.DataFrame) -> pd.DataFrame:
    """Fits that crashed or were stopped, by method and message."""
    failed = fits[fits["status"].isin(["crashed", "timed out"])]
    message = failed["message"].astype(str).str.replace("|", "/").str.slice(0, 120)
    groups = failed.groupby(["method", "status", message])["instance"].agg(["size", "first"]).reset_index()
    return groups.rename(columns={"size": "fits", "first": "for example"}).set_index("method").astype(str)


def versions(methods: list[Method]) -> list[str]:
    """Packages of each environment that its list of requirements names."""
    lines = []
    for environment, of in pd.Series(methods, dtype=object).groupby([method.environment for method in methods]):
        python, listed = of.iloc[0].python, HERE / "environments" / f"{environment}.txt"
        names = requirements(listed) if listed.exists() else OURS
        if python.exists():
            done = subprocess.run([python, "-c", VERSION, *names], capture_output=True, text=True)
            users = "; ".join(method.name for method in of)
            lines.append(f"- {users}: {done.stdout.strip() or 'versions unknown'}")
    return lines


def requirements(path: Path) -> list[str]:
    """Names of the packages in a list of requirements that are given with a version."""
    lines = [line.split("#")[0].strip() for line in path.read_text().splitlines()]
    return [line.split("==")[0].split("[")[0].strip() for line in lines if "==" in line]


# The page


def text(tasks: dict[str, ModuleType], figures: pd.DataFrame, fits: pd.DataFrame, methods: list[Method]) -> str:
    limits, variants = Limits(), [method.name for method in methods if not method.ranked]
    seeds = figures["unit"].str.rpartition("/")[2].nunique()
    parts = [
        f"Written on {datetime.date.today():%d %B %Y} by `make field`: {len(fits):,} fits of {len(methods)} methods, "
        f"with up to {seeds} seeds per data set (0 to {seeds - 1}), each within {limits.seconds / 60:g} minutes and "
        f"{limits.gigabytes:g} GB (*speed*: {speed.LIMIT / 60:g} minutes), on {platform.system()} with "
        f"Python {platform.python_version()}.",
        "## Methods",
        "\n".join(f"- **{method.name}**: {' '.join(method.docstring.split())}" for method in methods),
        "Versions:",
        "\n".join(versions(methods)),
        "## What counts as noise",
        NOISE.strip(),
        "![Mean rank of each method in each task, with intervals](images/field.png)",
    ]
    for name, task in tasks.items():
        own = figures[figures["task"] == name]
        if own["value"].notna().any():
            parts += [f"## {name.capitalize()}", task.__doc__.strip(), markdown(task_table(task, own, variants))]
    failed = not_finished(fits)
    if len(failed):
        parts += ["## Fits that did not finish", markdown(failed)]
    return "\n\n".join(parts)


def write_page(tasks: dict[str, ModuleType], figures: pd.DataFrame, fits: pd.DataFrame, methods: list[Method]) -> None:
    """Replace what is between the markers."""
    page = PAGE.read_text() if PAGE.exists() else f"# Comparison with other methods\n\n{BEGIN}\n{END}\n"
    if BEGIN not in page or END not in page:
        raise ValueError(f"{PAGE} has no lines {BEGIN} and {END}: add them where the tables belong")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{text(tasks, figures, fits, methods)}\n{END}{after}")
    variants = [method.name for method in methods if not method.ranked]
    picture(tasks, figures[~figures["method"].isin(variants)]).savefig(PICTURE, dpi=120)


def picture(tasks: dict[str, ModuleType], figures: pd.DataFrame):
    """Mean ranks with intervals: a panel per task, a line per method.

    The best come first, by their ranks in the tasks on what is found; noise and speed have no part in this order.
    Methods that are meant for less than half of these tasks come last.
    """
    from matplotlib.figure import Figure

    own = {name: figures[figures["task"] == name] for name in tasks}
    tables = {name: compared(main_values(own[name], tasks[name])) for name in tasks}
    tables = {name: table for name, table in tables.items() if len(table)}
    ranks = pd.DataFrame({name: table["rank"] / len(table) for name, table in tables.items() if name not in BESIDE})
    few = ranks.notna().sum(axis=1) < ranks.shape[1] / 2
    order = ranks.mean(axis=1).add(few).sort_values()
    figure = Figure(figsize=(2 + 1.5 * len(tables), 1 + 0.28 * len(order)), layout="constrained")
    axes = figure.subplots(1, len(tables), sharey=True, squeeze=False)[0]
    for ax, (name, table) in zip(axes, tables.items(), strict=True):
        table = table.reindex(order.index)
        places = np.arange(len(table))
        ax.hlines(places, table["rank_low"], table["rank_high"], color="0.6", linewidth=2)
        first, unknown = table["is_first"].eq(True), table["low"].isna()
        level = first | (table["noise"].eq(True) & ~unknown)
        styles = (level, BLUE, BLUE), (~level & ~unknown, BLUE, "white"), (unknown & ~first, "0.6", "0.8")
        for rows, edge, face in styles:
            ax.plot(table["rank"][rows], places[rows], "o", color=edge, markerfacecolor=face, markersize=5)
        ax.set(title=name, xlabel="mean rank", xlim=(0.5, table["rank"].count() + 0.5))
        ax.grid(axis="y", color="0.92")
        ax.set_axisbelow(True)
    axes[0].set_yticks(np.arange(len(order)), order.index)
    axes[0].invert_yaxis()
    legend = "blue: first, or within noise of the first;  white: not;  grey: too few data sets to tell"
    figure.supxlabel(legend, fontsize="small")
    return figure
