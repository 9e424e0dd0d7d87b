"""netbic export and netbic plot: files appear, belong to the folder or to the user, and errors are one line."""

import json
import time
from itertools import product

import pandas as pd
import pytest

import netbic
from netbic.pl.base import LABELS
from support.output_folders import contents, fit, run

FORMATS = {"gmt": "modules.gmt", "lists": "lists.txt", "cytoscape": "cytoscape", "membership": "membership.tsv"}
START = {"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<?xml"}


def failed(done, code=2):
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    return done.output.strip().splitlines()[-1]


@pytest.fixture
def with_labels(results):
    table = pd.DataFrame({"sample": [f"s{k}" for k in range(20)], "kind": ["a"] * 8 + ["b"] * 12, "age": range(20)})
    table = table.assign(days=range(1, 21), event=[1, 0] * 10)
    table.to_csv(results.parent / "labels.tsv", sep="\t", index=False)
    options = ("--variables", "kind,age", "--survival", "days,event")
    assert run("associate", results, "--sample-info", results.parent / "labels.tsv", *options).exit_code == 0
    return results


def test_exported_files_are_replaced_and_removed_with_the_results(results, cohort):
    for kind, name in FORMATS.items():
        done = run("export", results, "--format", kind)
        assert done.exit_code == 0, done.output
        assert f"{results / name}: " in done.output
        assert (results / name).exists()
    assert run("export", results, "--format", "gmt").exit_code == 0
    listed = json.loads((results / "run.json").read_text())["files"]
    assert "modules.gmt" in listed
    assert run("export", results, "--format", "xlsx").exit_code == 0
    assert fit(cohort, results, "--force", "--no-report", "--no-verdict").exit_code == 0
    assert not (results / "modules.gmt").exists()
    assert not (results / "cytoscape").exists()
    (results / "cytoscape").mkdir()
    (results / "cytoscape" / "module_1.cyjs").write_text("mine")
    assert "module_1.cyjs" in failed(run("export", results, "--format", "cytoscape", "--force"))
    assert contents(results / "cytoscape") == {"module_1.cyjs": b"mine"}


def test_an_overview_has_as_many_genes_as_asked_for(results):
    assert run("export", results, "--format", "overview", "--genes", 3).exit_code == 0
    table = pd.read_table(results / "overview.tsv")
    assert [name for name in table if name.startswith("gene_")] == ["gene_1", "gene_2", "gene_3"]
    assert "overview.tsv" in json.loads((results / "run.json").read_text())["files"]
    assert "--genes is for --format overview" in failed(run("export", results, "--format", "gmt", "--genes", 3))


def test_gene_sets_of_some_modules_are_drawn(results, tmp_path):
    out = tmp_path / "sets.svg"
    (results / "gene_sets.tsv").unlink(missing_ok=True)
    assert "has no gene_sets.tsv: run netbic enrich" in failed(run("plot", results, "enrichment", "--out", out))
    genes = netbic.get.modules_df(results).groupby("module")["name"].agg(list)
    others = [f"G{k}" for k in range(30, 36)]
    sets = [f"HALLMARK_SET{module}_GENES\t\t" + "\t".join([*own, *others]) for module, own in genes.items()]
    (tmp_path / "sets.gmt").write_text("\n".join(sets) + "\n")
    assert run("enrich", results, "--gene-sets", tmp_path / "sets.gmt").exit_code == 0
    assert run("plot", results, "enrichment", "--module", "1,2", "--out", out).exit_code == 0
    svg = out.read_text()
    assert ">SET1 genes<" in svg  # the table keeps the identifier
    assert pd.read_table(results / "gene_sets.tsv")["term"].str.startswith("HALLMARK_SET").all()
    assert ">SET2 genes<" in svg


def test_the_membership_of_all_genes_is_exported(results, cohort, tmp_path):
    assert run("export", results, "--format", "membership").exit_code == 0
    table = pd.read_csv(results / "membership.tsv", sep="\t", index_col="gene")
    expected = netbic.get.membership_df(results)
    pd.testing.assert_frame_equal(table, expected.round(6), check_names=False)
    assert "membership.tsv" in json.loads((results / "run.json").read_text())["files"]
    (cohort / "expression.tsv").rename(tmp_path / "moved.tsv")
    own = ("export", results, "--format", "membership", "--out", tmp_path / "own.tsv")
    assert "say where they are (--expression)" in failed(run(*own), 1)
    assert run(*own, "--expression", tmp_path / "moved.tsv").exit_code == 0
    assert (tmp_path / "own.tsv").read_bytes() == (results / "membership.tsv").read_bytes()
    elsewhere = ("--format", "gmt", "--expression", tmp_path / "moved.tsv")
    assert "is for --format membership" in failed(run("export", results, *elsewhere))


def test_data_that_changed_after_the_fit_are_noticed(results, cohort, tmp_path):
    data = pd.read_csv(cohort / "expression.tsv", sep="\t", index_col=0, float_precision="round_trip")
    membership = ("export", results, "--format", "membership")
    assert "warning" not in run(*membership).output
    before = (results / "membership.tsv").read_bytes()
    swapped = data.set_axis([*data.columns[1::-1], *data.columns[2:]], axis=1)  # two samples were confused
    for changed in (data * 2, data + data.to_numpy()[::-1], swapped):
        changed.to_csv(cohort / "expression.tsv", sep="\t")
        for command in (membership, ("plot", results, "heatmap", "--out", tmp_path / "heatmap.svg")):
            assert "its values are not those that the modules were found in" in failed(run(*command), 1)
    assert (results / "membership.tsv").read_bytes() == before
    assert not (tmp_path / "heatmap.svg").exists()
    model = netbic.load(results)
    outside = data.index[~data.index.isin(model.names_["columns"][model.columns_.any(axis=0)])][0]
    data.assign(s3=data["s3"] + (data.index == outside)).to_csv(cohort / "expression.tsv", sep="\t")
    done = run(*membership)
    assert done.exit_code == 0
    assert "its values are not exactly those that the modules were found in" in done.output
    data.iloc[::-1, ::-1].to_csv(cohort / "expression.tsv", sep="\t")  # the same data in another order
    assert "warning" not in run(*membership).output
    assert (results / "membership.tsv").read_bytes() == before


def test_equal_results_are_equal_files(with_labels, tmp_path, monkeypatch):
    written = list[dict[str, bytes]]()
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.setattr(time, "time", lambda number=number: 1.6e9 + 1e6 * number)
        monkeypatch.setattr(time, "localtime", lambda *_, number=number: time.gmtime(1.6e9 + 1e6 * number))
        for kind, ending in product(("heatmap", "network", "scores", "associations", "survival"), START):
            assert run("plot", with_labels, kind, "--out", folder / f"{kind}.{ending}").exit_code == 0
        assert run("export", with_labels, "--format", "xlsx", "--out", folder / "a.xlsx").exit_code == 0
        written.append(contents(folder))
    assert written[0] == written[1]


def test_a_network_is_needed_for_networks(cohort, tmp_path):
    assert (
        run("fit", cohort / "expression.tsv", "--out", tmp_path / "plain", "--modules", 1, "--no-report").exit_code == 0
    )
    assert "without a network" in failed(run("export", tmp_path / "plain", "--format", "cytoscape"))
    out = tmp_path / "network.svg"
    assert run("plot", tmp_path / "plain", "network", "--out", out).exit_code == 0
    assert b"coexpression" in out.read_bytes()


def test_figures_are_drawn(with_labels, tmp_path):
    for kind, ending, options in (
        ("heatmap", "png", ("--annotate", "kind,age")),
        ("heatmap", "svg", ("--module", 1, "--size", 5, 4, "--title", "EMT & <stroma>", "--xlabel", "tumours")),
        ("network", "pdf", ("--module", 1)),
        ("associations", "svg", ()),
        ("scores", "png", ("--annotate", "kind")),
        ("survival", "svg", ("--module", 1, "--until", 15)),
        ("survival", "png", ("--survival", "age,event")),
    ):
        out = tmp_path / f"{kind}.{ending}"
        done = run("plot", with_labels, kind, "--out", out, *options)
        assert done.exit_code == 0, done.output
        assert out.read_bytes().startswith(START[ending])
        if "--size" in options:
            drawn = out.read_bytes()
            assert all(
                part in drawn for part in (b'width="360pt" height="288pt"', b"EMT &amp; &lt;stroma&gt;", b">tumours<")
            )
        content = out.read_bytes()
        assert kind != "associations" or any(b"kind: " + level in content for level in (b"a", b"b"))
        fonts = {"svg": b"@font-face{font-family:'DejaVu Sans'", "pdf": b"/FontFile2"}  # they are part of the file
        assert fonts.get(ending, b"") in content
        assert "exists" in failed(run("plot", with_labels, kind, "--out", out, *options))
    given = ("plot", with_labels, "--out", tmp_path / "figure.png")
    line = failed(run(*given, "scores", "--annotate", "kindd"), 1)
    assert line.endswith("no column 'kindd' (--annotate): it has kind, age, days, event (did you mean kind?)")
    line = failed(run(*given, "survival", "--survival", "days"))
    assert line.endswith("--survival 'days': name two columns, TIME,EVENT")
    assert "'x'" in failed(run(*given, "survival", "--survival", "days,x"), 1)


def test_what_cannot_be_drawn_is_said_in_one_line(results, cohort, tmp_path):
    out = tmp_path / "figure.png"
    assert "must end in .pdf, .png or .svg" in failed(run("plot", results, "scores", "--out", tmp_path / "fig.doc"))
    line = failed(run("plot", results, "scores", "--out", out, "--module", 99))
    assert f"--module 99: modules are numbered from 1; {results} has " in line
    assert "expected numbers of at least 1" in failed(run("plot", results, "scores", "--out", out, "--module", 0))
    line = failed(run("plot", results, "scores", "--out", out, "--module", "1,2"))
    assert "--module 1,2: scores shows one module, so give one number" in line
    assert "netbic associate" in failed(run("plot", results, "associations", "--out", out))
    assert "run netbic fit without --modules" in failed(run("plot", results, "n-modules", "--out", out))
    assert "--survival TIME,EVENT" in failed(run("plot", results, "survival", "--out", out))
    assert "--until has no effect on scores" in failed(run("plot", results, "scores", "--out", out, "--until", 3))
    assert "netbic associate" in failed(run("plot", results, "scores", "--out", out, "--annotate", "kind"))
    assert "--module has no effect" in failed(run("plot", results, "associations", "--out", out, "--module", 1))
    other = cohort / "other.tsv"
    pd.DataFrame({"gene": ["G1", "G2"], "s0": [1.0, 2.0], "s1": [0.0, 1.0]}).to_csv(other, sep="\t", index=False)
    line = failed(run("plot", results, "heatmap", "--out", out, "--expression", other), 1)
    assert "of the fit: give the data of the fit" in line
    (cohort / "expression.tsv").unlink()
    assert "say where they are (--expression)" in failed(run("plot", results, "heatmap", "--out", out), 1)
    assert not out.exists()


def test_labels_have_the_same_colour_whichever_are_drawn(with_labels, tmp_path):
    other = {"sample": [f"s{k}" for k in range(20)], "first": list("xy") * 10, "kind": ["a"] * 8 + ["b"] * 12}
    pd.DataFrame(other).to_csv(tmp_path / "other.tsv", sep="\t", index=False)
    assert run("associate", with_labels, "--sample-info", tmp_path / "other.tsv", "--force").exit_code == 0
    run("plot", with_labels, "scores", "--out", tmp_path / "after.svg", "--annotate", "kind")
    drawn = (tmp_path / "after.svg").read_bytes()
    assert LABELS[0].lower().encode() not in drawn  # the colours of the first variable, which is not drawn
    assert LABELS[2].lower().encode() in drawn


def test_colours_can_be_chosen(with_labels, tmp_path):
    out = tmp_path / "figure.svg"
    plot = ("plot", with_labels, "scores", "--annotate", "kind,age", "--force", "--out", out)
    assert run(*plot, "--colour", "a=#123456", "--colour", "kind: b=red").exit_code == 0
    assert b"#123456" in out.read_bytes()
    assert b"#ff0000" in out.read_bytes()
    for given, message in (("c=red", "no column of --annotate has it"), ("a=rde", "write LEVEL=COLOUR")):
        assert message in failed(run(*plot, "--colour", given))
    curves = ("plot", with_labels, "survival", "--force", "--out", out, "--colour")
    assert run(*curves, "high=#123456", "--colour", "up=#123456").exit_code == 0
    assert b"#123456" in out.read_bytes()
    assert "curves are named up, down, others, high or low" in failed(run(*curves, "a=red"))
    without = ("plot", with_labels, "scores", "--force", "--out", out, "--colour", "a=red")
    assert "name it (--annotate)" in failed(run(*without))
    assert "--colour has no effect on network" in failed(run(*plot[:2], "network", "--out", out, "--colour", "a=red"))


def test_the_report_has_a_title(cohort, tmp_path):
    folder = tmp_path / "titled"
    titled = ("--modules", 1, "--no-verdict", "--title", "Patients <of> 2026")
    assert fit(cohort, folder, *titled).exit_code == 0
    heading = "<h1><bdi>{}</bdi></h1>"
    assert heading.format("Patients &lt;of&gt; 2026") in (folder / "report.html").read_text()
    assert run("report", folder).exit_code == 0
    assert heading.format("Patients &lt;of&gt; 2026") in (folder / "report.html").read_text()
    assert run("report", folder, "--title", "Another", "--out", tmp_path / "a.html").exit_code == 0
    assert heading.format("Another") in (tmp_path / "a.html").read_text()
    assert fit(cohort, tmp_path / "plain", "--modules", 1, "--no-verdict").exit_code == 0
    assert heading.format("expression") in (tmp_path / "plain" / "report.html").read_text()
