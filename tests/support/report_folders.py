"""Folders of fits for reports: one with ordinary names, one with names that contain markup and scripts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import netbic
from support.commands import run_successfully

# No name of a gene, a sample, a gene set or a file may make a page execute this.
TRAP = "window.trapped=1"
HOSTILE = [
    f"<script>{TRAP}</script>",
    f"</script><script>{TRAP}</script>",
    f"</style><script>{TRAP}</script>",
    f"<img src=x onerror={TRAP}>",
    f'" onmouseover="{TRAP}',
    f"' onfocus='{TRAP}",
    f"--><svg onload={TRAP}>",
    f"{{{{ {TRAP} }}}} ${{{TRAP}}}",
    "&lt;b&gt; &amp; \\u003c",
    "\u202eevil\u202c \u200f\u05e2\u05d1\u05e8\u05d9\u05ea",
    "🧬" * 12,
    "line\u2028separator\u2029end",
    "long" * 125,
    "__proto__",
    "constructor",
    "=cmd|' /C calc'!A0",
    '@tab\tand "quotes"',
]

SITES = [f"<img src=x onerror={TRAP}>", "b", "c"]  # labels of samples


def as_displayed(name: str) -> str:
    """A name as a page shows it: characters that reverse the text direction are written as escapes."""
    return name.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c")


def ordinary(folder: Path) -> Path:
    """A fit of four modules, with a network and gene sets."""
    return fitted(_cohort(), folder, "expression.parquet", ["planted", "other", "third"])


def hostile(folder: Path) -> Path:
    """The same, where the heaviest genes and samples, the gene sets and the file have hostile names."""
    study = _cohort()
    model = netbic.SparseGraphSVD(1, n_rows=30, n_columns=40).fit(study.expression)
    samples, genes = (np.array(axis, dtype=object) for axis in study.expression.axes)
    for names, weights in ((genes, model.components_[0]), (samples, model.left_vectors_[:, 0])):
        names[np.argsort(-np.abs(weights))[: len(HOSTILE)]] = HOSTILE
    renamed = replace(study, expression=study.expression.set_axis(samples).set_axis(genes, axis=1))
    sets = [name for name in HOSTILE if "\t" not in name]  # a tab ends a field of a GMT file
    return fitted(renamed, folder, f"<img src=x onerror={TRAP}>'\".parquet", sets)


def all_samples(folder: Path) -> Path:
    """A fit of three modules (the last is noise) that keep all samples, with groups of samples and verdicts."""
    study = netbic.simulate.cohort(120, 400, n_modules=2, module_samples=30, strength=1.5, random_state=1)
    model = netbic.SparseGraphSVD(3, n_columns=40, column_graph=study.network).fit(study.expression)
    netbic.save(model, folder)
    netbic.report.write_heatmaps(folder, model, study.expression)
    groups = netbic.selection.SampleGroups.find(model, study.expression)
    verdicts = netbic.selection.verdicts(model, study.expression, n_pairs=4, random_state=0, feature_name="gene")
    netbic.io.write_table(folder / "samples.tsv", groups.table)
    netbic.io.write_table(folder / "verdicts.tsv", verdicts.table)
    list(netbic.enrichment.write_enrichment(model, folder, None, random_state=0))
    netbic.report.write_report(folder)
    return folder


def labelled(folder: Path, *options: str) -> Path:
    """A fit of two modules with a sample table: labels (one of them hostile, some missing), numbers, survival."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    X = pd.DataFrame(generator.standard_normal((90, 200)), columns=[f"g{k}" for k in range(200)])
    X.index = [f"s{k}" for k in range(90)]
    X.iloc[:30, :40] += 2.0
    X.T.to_csv(folder / "x.tsv", sep="\t")
    risk = np.where(np.arange(90) < 30, 3.0, 1.0)
    table = pd.DataFrame({"type": ["in"] * 30 + ["other"] * 60, "site": generator.choice(SITES, 90)}, index=X.index)
    table["age"] = generator.normal(60, 10, 90).round(1)
    table["grade"] = generator.choice(["low", "middle", "high"], 90)
    table[f"<b>days</b>{TRAP}"] = (1000 * generator.exponential(1 / risk)).round()
    table["event"] = generator.integers(0, 2, 90)
    table.loc["s3", "site"] = None
    table.loc["s5", "event"] = None
    table.rename_axis("sample").to_csv(folder / "labels.tsv", sep="\t")
    labels = ["--sample-info", folder / "labels.tsv", "--survival", f"<b>days</b>{TRAP},event"]
    chosen = ["--modules", 2, "--genes", 40, "--no-verdict", "--types", "grade=low<middle<high", *options]
    run_successfully("fit", folder / "x.tsv", *labels, *chosen, "--out", folder / "out")
    return folder / "out"


def _cohort():
    return netbic.simulate.cohort(120, 400, n_modules=3, module_samples=30, random_state=2)


def fitted(study, folder: Path, file: str, sets: list[str]) -> Path:
    """Files of a study, fitted by the command line; gene set k holds genes of planted module k modulo three."""
    folder.mkdir(parents=True, exist_ok=True)
    study.expression.T.rename_axis("gene").to_parquet(folder / file)
    genes = np.array(study.expression.columns, dtype=object)
    tails, heads, _ = study.network.edges()
    pd.DataFrame({"source": genes[tails], "target": genes[heads]}).to_parquet(folder / "network.parquet")
    members = [genes[mask][:40] for mask in study.genes]
    lines = ["\t".join([name, name, *members[at % len(members)]]) for at, name in enumerate(sets)]
    (folder / "sets.gmt").write_text("\n".join(lines), encoding="utf-8")
    files = (folder / file, "--graph", folder / "network.parquet", "--gene-sets", folder / "sets.gmt")
    run_successfully("fit", *files, "--modules", 4, "--genes", 40, "--samples", 30, "--out", folder / "out")
    return folder / "out"
