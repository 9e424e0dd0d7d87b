"""Verdicts, groups of samples and diagnostics in the report, and modules that keep all samples."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.report import contents, modules, pictures
from netbic.selection import SampleGroups, verdicts


@pytest.fixture(scope="module")
def study():
    return netbic.simulate.cohort(120, 400, n_modules=2, module_samples=30, strength=1.5, random_state=1)


@pytest.fixture(scope="module")
def tables(folder_of_all_samples):
    """Groups of samples and verdicts."""
    return [netbic.io.read_table(folder_of_all_samples / f"{name}.tsv") for name in ("samples", "verdicts")]


@pytest.fixture(scope="module")
def text(folder_of_all_samples):
    return (folder_of_all_samples / "report.html").read_text()


@pytest.fixture(scope="module")
def gathered(folder_of_all_samples):
    return contents.gather(folder_of_all_samples)


@pytest.fixture
def folder(folder_of_all_samples, tmp_path):
    """The folder of a fit that keeps all samples, with groups of samples and verdicts."""
    return shutil.copytree(folder_of_all_samples, tmp_path / "copy")


def of_module(table, number):
    return table[table["module"] == number].fillna({"group": ""})


def script_data(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_the_page_and_every_card_begin_with_verdicts_and_samples(text, tables):
    samples, judged = tables
    main = text[text.index("<main>") :]
    sentence = re.search(r"Of 3 modules, 2 are strong, [^<]*\.", main)
    assert 0 < sentence.start() < main.index('<table class="sortable">') < main.index("<h2>Warnings</h2>")
    for number, (word, reason) in enumerate(zip(judged["verdict"], judged["reason"], strict=True), start=1):
        assert f'<span class="verdict {word.partition(" ")[0]}">{word}</span>' in main
        card = text[text.index(f'id="module-{number}"') :]
        assert 0 < card.index(reason) < card.index("<b>Samples:</b>") < card.index("<figure")
        groups = of_module(samples, number)["group"].value_counts()
        shown = ", ".join(f"{side} in {groups[side]}" for side in ("up", "down") if side in groups)
        assert f"<b>Samples:</b> {f'{shown} of 120 samples.' if shown else 'gradient. '}" in card
    assert "<b>Samples:</b> gradient" in text
    cells = re.findall(r'data-value="(\d)"><a href="#module-(\d)">(\d)</a>', text)
    assert cells == [("1", "1", "1"), ("2", "2", "2"), ("3", "3", "3")]


def test_a_heatmap_of_all_samples_is_in_the_order_of_the_scores(study, gathered, tables):
    X = study.expression.to_numpy()
    scaled = (X - X.mean(axis=0)) / np.sqrt(X.std(axis=0))  # as in the search
    for number, module in enumerate(gathered.modules):
        own, heatmap = of_module(tables[0], number + 1), module.heatmap
        assert np.all(np.diff(own["score"].to_numpy()[heatmap.samples]) <= 0)
        assert sorted(heatmap.samples) == list(range(120))
        values = scaled[np.ix_(heatmap.samples, heatmap.genes)].T.clip(-heatmap.limit, heatmap.limit)
        np.testing.assert_allclose(heatmap.values * heatmap.limit / 127, values, atol=0.51 * heatmap.limit / 127)
        assert bool(module.group_strip) == (own["group"] != "").any()
        names = {label: set(listed) for label, listed in module.sample_names.items()}
        groups = own[own["group"] != ""].groupby("group")["sample"].apply(set)
        assert names == {f"samples {group}": listed for group, listed in groups.items()}


def test_a_page_of_many_samples_stays_small(folder, text, monkeypatch):
    monkeypatch.setattr(contents, "_MOST_LISTED", 100)
    short = netbic.report.write_report(folder).read_text()
    data = script_data(short)
    assert all(not module["samples"] and "scores" not in module for module in data["modules"])
    assert all(str(at) in data["samples"] for module in data["modules"] for at in module["heatmap"]["samples"])
    assert "Search for a gene</label>" in short
    assert "Download all genes (TSV)" in short
    assert "Search for a gene or sample</label>" in text


def test_tables_about_other_samples_or_modules_are_left_out(folder, gathered, tables):
    samples, judged = tables
    netbic.io.write_table(folder / "samples.tsv", samples.iloc[::-1])  # in another order they are matched
    for module, other in zip(contents.gather(folder).modules, gathered.modules, strict=True):
        assert module.scores.scores.tolist() == other.scores.scores.tolist()
        assert module.scores.groups.tolist() == other.scores.groups.tolist()
    for n in (240, 0):
        netbic.io.write_table(folder / "samples.tsv", samples.head(n))
        assert all(module.scores is None for module in contents.gather(folder).modules)
    netbic.io.write_table(folder / "samples.tsv", samples.assign(sample=samples["sample"] + "x"))
    netbic.io.write_table(folder / "verdicts.tsv", judged.head(2))
    gathered = contents.gather(folder)
    assert all(module.verdict is None and module.scores is None for module in gathered.modules)
    assert [module.samples_in_words for module in gathered.modules] == ["all 120"] * 3
    assert {"verdicts", "scores"} <= {line.split()[0] for line in gathered.missing}
    text = netbic.report.write_report(folder).read_text()
    assert 'data-name="verdict"' not in text
    assert "Samples with" not in text
    (folder / "verdicts.tsv").write_text("a\tb\n")
    with pytest.raises(netbic.InputError, match=r"verdicts.tsv.*has no column closest.*fit again"):
        contents.gather(folder)


def test_warnings_are_shown_as_the_command_recorded_them_unless_a_diagnostic_says_the_same(folder):
    texts = ["modules 1, 3 hold fewer than 40 genes: no other has a positive score", "modules 2 did not converge"]
    model = netbic.load(folder)
    assert contents.gather(folder, model, {"warnings": texts}).warnings == texts
    model.converged_ = np.array([True, False, True])
    assert contents.gather(folder, model, {"warnings": texts}).warnings == texts[:1]


def module_page(**given):
    """A module of which nothing else is known; its summary has the arguments that are no fields."""
    none, known = modules.Members(np.empty(0, dtype=np.intp), np.empty(0), []), modules.ModulePage.__dataclass_fields__
    summary = {"converged": True, "graph_share": 0.0} | {key: given[key] for key in given if key not in known}
    own = {"number": 2, "genes": none, "samples": none} | {key: given[key] for key in given if key in known}
    return modules.ModulePage(summary=summary, **own)


def badges(module):
    return [one.badge for one in module.details]


def test_diagnostics_say_what_is_wrong_with_a_module():
    assert module_page(worst_rank=200, repeats=pd.NA).details == []
    (driven,) = module_page(worst_rank=1234).details
    assert (driven.badge, driven.text) == ("graph-driven", "A leading gene has rank 1,234 by the data alone.")
    (driven,) = module_page(worst_rank=1234, graph_share=0.4).details
    assert driven.text.startswith("40% of the scores of its genes come from the network. A leading gene has rank")
    (same,) = module_page(recurrent=("TP53", "MYC")).details
    assert same.text.startswith("TP53, MYC are among the ten leading genes")
    repeated = {"repeats": 1, "correlation": 0.83, "gene_overlap": 0.1}
    assert badges(module_page(**repeated)) == ["repeats module 1"]
    assert "0.83 with those of module 1; both contain 10%" in module_page(**repeated).details[0].text
    verdict = modules.Verdict("repeats 1", "Repeats module 1: same samples, further genes.", "", 1, 0.83, 0.1)
    assert module_page(verdict=verdict, **repeated).details == []
    for text, badge in (("may be technical: its scores follow the depth", "may be technical"),
                        ("one sample carries it: 's7'", "few samples")):  # fmt: skip
        page = module_page(verdict=modules.Verdict("strong", "Strong.", text, None, 0.0, 0.0))
        assert badges(page) == [badge]
        assert ("may be technical" in page.kinds) == (badge == "may be technical")
        assert page.details[0].kind in modules.EXPLANATIONS
        assert page.details[0].text[1:] == f"{text[1:]}."
    assert all(kind in modules.EXPLANATIONS for kind in ("graph-driven", "repeats", same.kind))
    star, everyone = np.zeros((20, 20)), np.arange(20)
    star[0, 1:] = star[1:, 0] = 1
    ring = np.roll(np.eye(20), 1, axis=1) + np.roll(np.eye(20), -1, axis=1)
    for weights, share, expected in ((star, 1.0, ["hub-driven"]), (ring, 0.2, []), (1 - np.eye(20), None, [])):
        network = pictures.subnetwork(netbic.Graph(weights), everyone, np.linspace(1, 0.1, 20), everyone)
        assert share is None or network.hub_share == pytest.approx(share)  # three nodes in a row of a ring
        assert badges(module_page(network=network)) == expected


def test_default_sizes_and_settings_and_genes_that_lead_most_modules_are_named(folder, tmp_path):
    record = {"settings": {"modules": 3, "genes": 40, "samples": None, "smoothness": None, "graph_term": None}}
    shown = dict(contents.gather(folder, record=record).settings)
    assert (shown["samples"], shown["smoothness"], shown["graph_term"]) == ("all", "0.6", "modularity")
    assert shown["smoothness_scale"] == "module: in units of the strength of each module"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) @ rng.normal(size=(1, 30)) + rng.normal(size=(60, 30))
    for given, genes in (
        ({}, "from the data, for each module"),
        ({"search": "sequential"}, "from the data, for each module"),
        ({"n_columns": 7}, "7"),
        ({"column_penalty": netbic.Dense()}, "all"),
    ):
        netbic.save(netbic.SparseGraphSVD(1, **given).fit(X), tmp_path)
        gathered = contents.gather(tmp_path, record={"settings": {"genes": None}})
        assert dict(gathered.settings) == {"genes": genes, "samples": "all"}
    X = rng.normal(size=(60, 30)) * np.where(np.arange(30) == 7, 30, 1)
    model = netbic.SparseGraphSVD(4, n_rows=20, n_columns=20, deflation="hotelling").fit(X)
    netbic.save(model, tmp_path)
    names = [module.recurrent for module in contents.gather(tmp_path).modules]
    assert [len(own) for own in names] == model.diagnostics_["recurrent"].tolist()
    assert sum("7" in own for own in names) >= 2


def test_verdicts_that_could_not_be_given_are_explained(study, tmp_path):
    few = study.expression.iloc[:15]
    model = netbic.SparseGraphSVD(2, n_columns=40).fit(few)
    netbic.save(model, tmp_path)
    netbic.io.write_table(tmp_path / "verdicts.tsv", verdicts(model, few, feature_name="gene").table)
    gathered = contents.gather(tmp_path)
    assert gathered.verdict_sentence == "Too few samples to tell: 15 samples, at least 20 are needed."
    assert [module.verdict.kind for module in gathered.modules] == ["unknown", "unknown"]
    text = netbic.report.write_report(tmp_path).read_text()
    assert "too few samples to tell" in text
    assert "<h4>Network</h4>" not in text  # without a network there is no place for one
    assert "Edges inside the module" not in text


def test_selected_samples_are_listed_and_no_groups_are_looked_for_among_them(study, tmp_path):
    model = netbic.SparseGraphSVD(2, n_rows=30, n_columns=40).fit(study.expression)
    netbic.save(model, tmp_path)
    words = [f"30 of 120 selected ({up} up, {30 - up} down)" for up in (model.left_vectors_ > 0).sum(axis=0)]
    assert [module.samples_in_words for module in contents.gather(tmp_path).modules] == words
    netbic.io.write_table(tmp_path / "samples.tsv", SampleGroups.find(model, study.expression).table)
    text = netbic.report.write_report(tmp_path).read_text()
    assert 'data-name="n_samples"' in text
    assert "All 30 samples" in text
    for number, module in enumerate(contents.gather(tmp_path).modules):
        assert list(module.sample_names) == ["samples"]
        signs = np.sign(model.left_vectors_[:, number])
        assert module.scores.groups.tolist() == [{1: "up", -1: "down", 0: ""}[sign] for sign in signs]
        assert f"<b>Samples:</b> {words[number]}, up and down by the signs of their weights." in text


def test_modules_that_are_not_found_again_are_warnings(gathered):
    strong = gathered.modules[0].verdict

    def shown(word):
        """Two modules, the second with another verdict; the third is noise, with other diagnostics."""
        judged = [None if verdict is None else strong._replace(word=verdict) for verdict in ("strong", word)]
        pages = [replace(module, verdict=verdict) for module, verdict in zip(gathered.modules, judged, strict=False)]
        return contents.warnings_of(pages, {}, True)

    assert shown("strong")["no_warnings"].startswith("No warnings: all modules converged, and all are found again")
    for word, kind in (("doubtful", "doubtful"), ("repeats 1", "repeats"), ("too few samples to tell", "not judged")):
        assert [(kind, which) for kind, which, _ in shown(word)["explanations"]] == [(kind, [2])]
        assert shown(word)["no_warnings"] == ""
    edges = {"n_edges": 20, "q_value": 0.01, "degree_q_value": 0.5, "degree_expected": 19.0}
    by_degree = replace(gathered.modules[0], network=None, edges=edges)
    matched = replace(gathered.modules[1], network=None, edges=edges | {"degree_matched_on": "degree, mean"})
    found = {kind: text for kind, _, text in contents.warnings_of([by_degree, matched], {}, True)["explanations"]}
    than = "More edges than among random genes, but not more than among random genes with as many neighbours"
    assert found["hub-driven"].startswith(f"{than}. This says nothing against the genes themselves")
    assert found["edges as expected"].startswith(f"{than} and a similar mean. This says nothing against the genes")
    assert found["hub-driven"] in [one.text for one in by_degree.details]  # the sentence of the card
    unknown = contents.warnings_of([replace(module, verdict=None) for module in gathered.modules[:2]], {}, True)
    assert unknown["no_warnings"] == "No warnings, but the modules were not judged: they may be noise."


def test_a_module_is_shown_as_replicated_only_if_the_table_is_about_it(folder):
    table = pd.DataFrame({"module": [1, 2, 3], "verdict": ["strong", "weak", "not replicated"], "reason": "why"})
    netbic.io.write_table(folder / "replication.tsv", table)
    (folder / "replication.json").write_text('{"study": "<b>other.tsv", "n_shared": 2}')
    text = netbic.report.write_report(folder).read_text()
    for words in (
        "Its genes move together in",
        "Its genes weakly move together in",
        "Its genes are not shown to move together in",
    ):
        assert f"{words} <bdi>&lt;b&gt;other.tsv</bdi> <span" in text
    assert text.count("(not independent: 2 samples may be in both studies)") == 6
    netbic.io.write_table(folder / "replication.tsv", table.head(2))
    assert all(module.replication is None for module in contents.gather(folder).modules)


def test_a_card_of_a_sound_module_has_the_genes_of_the_highest_confidence_and_kme():
    genes = [{"name": f"G{k}", "confidence": 1.0, "kme": 0.9 - k / 10, "weight": k} for k in range(7)]
    for word, expected in (("strong", 5), ("moderate", 5), ("doubtful", 0), ("broad axis", 0), ("repeats 1", 0)):
        page = module_page(verdict=modules.Verdict(word, "Why.", "", None, 0.0, 0.0), judged=genes)
        assert page.to_validate == [f"G{k}" for k in range(expected)]


def test_a_card_has_leading_genes_unless_its_name_does_and_directions_of_gene_sets(folder_of_all_samples, gathered):
    summary = netbic.storage.summary_table(netbic.load(folder_of_all_samples))
    for module, top in zip(gathered.modules, summary["top_features"], strict=True):
        assert module.leading_genes == []  # named after them
        named = replace(module, name=f"some set: {', '.join(module.genes.names[3:6])}")
        assert ", ".join(named.leading_genes) == top
    module = gathered.modules[0]
    names, weights = module.genes.names, -np.abs(module.genes.weights)
    weights[:4] *= -1
    turned = replace(module, genes=module.genes._replace(weights=weights))
    for own, side in ((names[:4], "up"), (names[3:8], "down"), (names[2:8], "up and down"), (names[:5], "up")):
        assert turned.side_of({"genes": ", ".join(own)}) == side
