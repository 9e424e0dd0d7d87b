"""The report as an HTML file: its content, no external resources, and names that contain markup."""

import base64
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.cli.fit import summary_lines
from netbic.report import charts, contents
from netbic.report.page import _chance
from support import report_folders
from support.commands import run, run_successfully


class Page(HTMLParser):
    """Elements with attributes, and the text inside each kind."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self._open = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._open.append(tag)
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if self._open:
            self.texts[self._open[-1]][-1] += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page(ordinary_folder):
    return Page((ordinary_folder / "report.html").read_text())


@pytest.fixture(scope="module")
def hostile_page(hostile_folder):
    return Page((hostile_folder / "report.html").read_text())


@pytest.fixture
def copy(ordinary_folder, tmp_path):
    return shutil.copytree(ordinary_folder, tmp_path / "copy")


def test_nothing_is_loaded_and_no_element_has_inline_code(page, hostile_page):
    for _, attributes in page.elements + hostile_page.elements:
        for name in ("src", "href", "action", "srcset", "poster", "data"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/png;base64,"))
        assert not [name for name in attributes if name.startswith("on") or name == "style"]


def test_only_scripts_and_styles_of_the_page_may_run(page):
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    code = [
        text
        for attributes, text in zip(page.all("script"), page.texts["script"], strict=True)
        if attributes.get("type") != "application/json"
    ]
    for allowed, texts in ((rules["script-src"], code), (rules["style-src"], page.texts["style"])):
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert allowed == " ".join(f"'sha256-{digest}'" for digest in digests)


def test_hostile_names_are_text(page, hostile_page):
    count = {tag: sum(name == tag for name, _ in page.elements) for tag in ("script", "style")}
    assert count == {tag: sum(name == tag for name, _ in hostile_page.elements) for tag in count}
    assert all(image["src"].startswith("data:image/png;") for image in hostile_page.all("img"))
    shown = hostile_page.texts["bdi"]
    for name in report_folders.HOSTILE:
        least = 3 if "\t" not in name else 2  # as a gene, as a sample and as a gene set, which cannot hold a tab
        assert shown.count(report_folders.as_displayed(name)) >= least, name
    turns = re.compile("[\u202a-\u202e\u2066-\u2069]")
    texts = [text for tag, parts in hostile_page.texts.items() if tag not in ("script", "style") for text in parts]
    assert not any(turns.search(text) for text in texts)
    values_shown = [
        value or "" for _, values in hostile_page.elements for name, value in values.items() if name != "data-value"
    ]
    assert not any(turns.search(value) for value in values_shown)  # a download of the table holds names as they are
    data = json.loads(hostile_page.texts["script"][0])
    assert set(report_folders.HOSTILE) <= set(data["genes"].values())
    assert set(report_folders.HOSTILE) <= set(data["samples"].values())


def test_the_table_holds_the_summary(ordinary_folder, page):
    summary = netbic.io.read_table(ordinary_folder / "summary.tsv")
    cells = [cell["data-value"] for cell in page.all("td") if "data-value" in cell]
    columns = [header["data-name"] for header in page.all("th") if "data-name" in header]
    table = pd.DataFrame(np.array(cells).reshape(-1, len(columns)), columns=columns)
    for name in ("singular_value", "explained_variance_ratio", "graph_share", "n_genes", "n_edges"):
        np.testing.assert_array_equal(table[name].astype(float), summary[name])
    assert table["top_genes"].tolist() == summary["top_genes"].tolist()
    edges = netbic.io.read_table(ordinary_folder / "edges.tsv")
    np.testing.assert_array_equal(table["degree_fold_change"].astype(float), edges["degree_fold_change"])


def test_terminal_and_cards_name_the_same_gene_sets(ordinary_folder, page):
    model, table = netbic.load(ordinary_folder), netbic.io.read_table(ordinary_folder / "gene_sets.tsv")
    sets, names = (name(model, table) for name in (netbic.enrichment.naming_sets, netbic.enrichment.module_names))
    assert any(sets)
    lines = [line for line in summary_lines(ordinary_folder) if line.startswith("  module ")]
    for number, (line, own, name) in enumerate(zip(lines, sets, names, strict=True), start=1):
        assert line.startswith(f"  module {number} ({own}): " if own else f"  module {number}: ")
        assert name.startswith(own)
        assert name in page.texts["bdi"]
    assert set(table["name"]) <= set(page.texts["bdi"])
    best = table.groupby("module")["q_value"].min()
    expected = [f"q {_chance(best[k])}" if k in best else "none at q ≤ 0.05" for k in range(1, 5)]
    assert [text for text in page.texts["span"] if re.match("q |none at q", text)][-4:] == expected  # of the table


def test_a_fit_without_the_libraries_explains_how_to_install_them_and_continues(ordinary_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("netbic.report.page.find_spec", lambda name: None if name == "jinja2" else name)
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    done = run_successfully(
        "fit", ordinary_folder.parent / "expression.parquet", "--modules", 1, "--out", tmp_path / "out"
    )
    assert "run pip install '.[report]' in the netbic folder" in done.output
    assert not (tmp_path / "out" / "report.html").exists()
    failed = run("report", str(tmp_path / "out"))
    assert failed.exit_code == 1
    assert "a report needs jinja2: run pip install '.[report]' in the netbic folder" in failed.output


def test_resume_adds_gene_sets_and_report_to_a_finished_fit(ordinary_folder, tmp_path, monkeypatch):
    data = ordinary_folder.parent / "expression.parquet", "--graph", ordinary_folder.parent / "network.parquet"
    arguments = ("fit", *data, "--modules", 4, "--genes", 40, "--samples", 30, "--out", tmp_path / "out")
    run_successfully(*arguments, "--no-report")
    monkeypatch.setattr(netbic.SparseGraphSVD, "iter_fit", None)  # nothing is fitted from here on
    done = run_successfully(*arguments, "--resume", "--gene-sets", ordinary_folder.parent / "sets.gmt")
    assert "already finished: the modules are unchanged" in done.output
    assert "gene_sets.tsv" in done.output
    for path in ordinary_folder.rglob("*"):  # as if they had been requested from the beginning
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "out" / path.relative_to(ordinary_folder)).read_bytes(), path
    again = run_successfully(*arguments, "--resume", "--gene-sets", ordinary_folder.parent / "sets.gmt")
    assert "nothing to do" in again.output
    (tmp_path / "out" / "report.html").unlink()
    run_successfully("report", tmp_path / "out")
    assert (tmp_path / "out" / "report.html").read_bytes() == (ordinary_folder / "report.html").read_bytes()


@pytest.mark.filterwarnings("ignore")
def test_models_without_other_files_a_network_or_modules_have_a_report(ordinary_folder, tmp_path):
    shutil.copytree(ordinary_folder / "model", tmp_path / "bare")
    written = netbic.report.write_report(tmp_path / "bare").read_text()
    assert all(about in written for about in ("edges of the network between", "<b>Network</b>"))
    page = Page(written)
    text = " ".join(page.texts["li"])
    for missing in ("verdicts.tsv", "samples.tsv", "heatmaps.npz", "edges.tsv", "gene_sets.tsv", "alignment.json"):
        assert missing in text
    assert len(page.all("details")) == 3 * 4
    assert page.all("circle")
    X = netbic.simulate.paper(0.02, random_state=0).X
    for name, size in (("one", {"n_columns": 20}), ("none", {"column_penalty": netbic.L1(1e9)})):
        model = netbic.SparseGraphSVD(1, n_rows=20, **size).fit(X)
        netbic.save(model, tmp_path / name)
        written = netbic.report.write_report(tmp_path / name).read_text()
        assert not any(about in written for about in ("edges of the network between", "<b>Network</b>"))
        page = Page(written)
        assert "networks of the modules: the model was fitted without a network" in " ".join(page.texts["li"])
        assert page.all("table")
        assert not page.all("circle")
        assert bool(page.all("details")) == (model.n_components_ > 0) == (name == "one")


def test_the_options_of_enrich_are_those_of_the_report(ordinary_folder, copy):
    for content in ("{", "[1]", '{"edges": 3, "gene_sets": {"level": "low"}}'):  # damaged
        (copy / "enrichment.json").write_text(content)
        assert contents.gather(copy).levels == {"edges": 0.05, "gene_sets": 0.05}
    shutil.copy(ordinary_folder / "enrichment.json", copy)
    assert contents.gather(copy).tests == [("level", "0.05")]
    for level in (0.6,):
        run_successfully("enrich", copy, "--level", level)
        edges, gathered = netbic.io.read_table(copy / "edges.tsv"), contents.gather(copy)
        assert gathered.levels == {"edges": level, "gene_sets": 0.05}  # the gene sets are still those of the fit
        assert gathered.tests == [("level, edges", f"{level:g}"), ("level, gene sets", "0.05")]
        explained = edges["q_value"].le(level) & edges["degree_q_value"].gt(level)
        for module, own in zip(gathered.modules, explained, strict=True):
            assert ("edges as expected" in module.kinds) == (own and module.comparable)
        drawing = charts._edges(gathered.table, level).drawing
        more = edges.set_index("module")["degree_q_value"].le(level)
        for group in drawing["groups"]:
            assert (group["marks"][0]["style"] == "plain") == more[group["module"]]
            assert (f"more than expected from the degrees (q ≤ {level:g})" in group["text"]) == more[group["module"]]
        assert len(drawing["groups"]) > 0
    sets = ("--gene-sets", ordinary_folder.parent / "sets.gmt")
    run_successfully("enrich", copy, *sets, "--level", 0.01, "--by-sign", "--collapse", 0.5)
    assert contents.gather(copy).tests == [("level", "0.01"), ("by_sign", "yes"), ("collapse", "0.5")]
    assert "q ≤ 0.01" in netbic.report.write_report(copy).read_text()


def test_new_gene_sets_appear_in_a_new_report_and_whether_they_were_tested(ordinary_folder, copy, tmp_path):
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in copy.rglob("*") if path.is_file()}
    for bad in ("no genes here\n", "strange\t\tNOBODY\tKNOWS\tTHEM\n"):
        (tmp_path / "bad.gmt").write_text(bad)
        assert run("enrich", str(copy), "--gene-sets", str(tmp_path / "bad.gmt")).exit_code == 1
    assert before == {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in copy.rglob("*") if path.is_file()}
    sets = netbic.io.read_gene_sets(ordinary_folder.parent / "sets.gmt")
    (tmp_path / "new.gmt").write_text("\t".join(["brand-new", "", *next(iter(sets.values()))]))
    run_successfully("enrich", copy, "--gene-sets", tmp_path / "new.gmt")
    done = run_successfully("report", copy, "--out", tmp_path / "other.html")
    assert done.output.strip() == str(tmp_path / "other.html")
    text = (tmp_path / "other.html").read_text()
    names = Page(text).texts["bdi"]
    assert "brand-new" in names
    assert "planted" not in names
    n_without = 4 - netbic.io.read_table(copy / "gene_sets.tsv")["module"].nunique()
    assert text.count("No gene set is enriched in this module (q ≤ 0.05).") == n_without > 0
    assert text.count("none at q ≤ 0.05</span></td>") == n_without
    assert "Gene sets were not tested" not in text
    (copy / "gene_sets.tsv").unlink()
    not_tested = netbic.report.write_report(copy).read_text()
    assert "Gene sets were not tested" in not_tested
    assert "No gene set is enriched" not in not_tested


def test_tables_of_another_fit_are_left_out_and_those_of_other_programs_are_named(ordinary_folder, copy):
    sets = netbic.io.read_table(copy / "gene_sets.tsv")
    best = sets.iloc[[0]].assign(term="best", name="best", q_value=0.0)
    netbic.io.write_table(copy / "gene_sets.tsv", pd.concat([sets, best]))
    assert contents.gather(copy).modules[int(best["module"].iloc[0]) - 1].terms[0]["term"] == "best"  # first, not last
    for name, size in (("edges", "n_nodes"), ("gene_sets", "n_module")):
        table = netbic.io.read_table(copy / f"{name}.tsv")
        netbic.io.write_table(copy / f"{name}.tsv", table.assign(**{size: table[size] + 1}))
    X = netbic.io.open_dataset(ordinary_folder.parent / "expression.parquet").X
    other = netbic.SparseGraphSVD(4, n_rows=30, n_columns=40, random_state=1, center=None).fit(X)
    netbic.report.write_heatmaps(copy, other, X)
    gathered = contents.gather(copy)
    assert all(module.heatmap is None and module.edges is None and not module.terms for module in gathered.modules)
    assert any("edges.tsv" in line for line in gathered.missing)
    (copy / "gene_sets.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(netbic.InputError, match=r"gene_sets.tsv.*has no column"):
        contents.gather(copy)
    (copy / "gene_sets.tsv").unlink()
    edges = netbic.io.read_table(ordinary_folder / "edges.tsv").drop(columns="degree_expected")
    netbic.io.write_table(copy / "edges.tsv", edges)
    with pytest.raises(netbic.InputError, match=r"edges.tsv: has no column degree_expected"):
        contents.gather(copy)
    (copy / "edges.tsv").write_text("")
    with pytest.raises(netbic.InputError, match=r"edges.tsv.*cannot be read"):
        contents.gather(copy)


def test_a_report_is_removed_or_refused_as_asked(ordinary_folder, copy, tmp_path):
    options = ("--modules", 1, "--force", "--no-report", "--no-verdict")
    run_successfully("fit", ordinary_folder.parent / "expression.parquet", "--out", copy, *options)
    assert not (copy / "report.html").exists()
    assert (copy / "heatmaps.npz").exists()
    done = run("report", str(ordinary_folder), "--out", str(tmp_path / "no" / "page.html"))
    assert done.exit_code == 1
    assert "page.html" in done.output
    assert "its folder does not exist" in done.output
