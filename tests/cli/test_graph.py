"""netbic graph: a network from another study, which netbic fit reads with its names."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from support.commands import run, run_successfully


@pytest.fixture
def reference(cohort):
    """Another study of most of the genes, in another order, and one constant gene."""
    own = pd.read_csv(cohort / "expression.tsv", sep="\t", index_col=0)
    generator = np.random.default_rng(1)
    values = generator.standard_normal((30, 25))
    values[:12] += generator.standard_normal(25)
    values[-1] = 2.0
    frame = pd.DataFrame(values, index=own.index[:30][::-1], columns=[f"r{k}" for k in range(25)])
    frame.to_csv(cohort / "reference.tsv", sep="\t")
    return frame


def test_the_network_is_written_with_names_and_netbic_fit_reads_it(cohort, reference, tmp_path):
    prior = tmp_path / "prior.npz"
    done = run_successfully("graph", cohort / "reference.tsv", "--out", prior, "--neighbours", 4)
    expected = netbic.graph.coexpression(reference.T.iloc[:, :-1], 4)  # constant genes are left out
    assert re.match(rf"{prior}: 29 genes, {expected.n_edges} edges .* \(\d+\.\d s\)\n", done.output)
    assert done.output.endswith("have other samples: with the same ones, their correlations would be used twice\n")
    found = netbic.io.read_network(prior).graph
    assert found.names.tolist() == expected.names.tolist()
    assert (found.weights != expected.weights).nnz == 0
    assert (sp.load_npz(prior) != expected.weights).nnz == 0
    fitted = ("--genes", 10, "--modules", 1, "--no-report")
    given = "fit", cohort / "expression.tsv", "--graph", prior, *fitted, "--out"
    done = run_successfully(*given, tmp_path / "out")
    (share,) = netbic.load(tmp_path / "out").graph_share_
    assert re.search(rf"the network .* the modules.* \(graph share {share:.1g}\)\n", done.output)
    done = run_successfully(*given, tmp_path / "unused", "--smoothness", 0)
    assert "graph share" not in done.output
    assert (tmp_path / "unused" / "edges.tsv").is_file()
    assert "not independent evidence" not in done.output
    reference.T.to_csv(tmp_path / "turned.csv")
    run_successfully("graph", tmp_path / "turned.csv", "--samples-in-rows", "--absolute", "--out", tmp_path / "p.npz")
    absolute = netbic.graph.coexpression(reference.T.iloc[:, :-1], positive=False)
    assert (netbic.io.read_network(tmp_path / "p.npz").graph.weights != absolute.weights).nnz == 0
    used = netbic.load(tmp_path / "out").graphs_["columns"]
    assert used.n_edges == expected.n_edges
    assert used.names.tolist() == pd.read_csv(cohort / "expression.tsv", sep="\t")["gene"].tolist()


def test_fit_smooths_the_data_over_the_network(cohort, tmp_path):
    files = "fit", cohort / "expression.tsv", "--graph", cohort / "edges.tsv", "--out"
    small = "--genes", 10, "--modules", 2, "--no-report"
    done = run_successfully(*files, tmp_path / "cv", *small, "--diffusion", "cv")
    model = netbic.load(tmp_path / "cv")
    assert model.diffusion == "cv"
    assert f"diffusion chosen by cross-validation: {model.diffusion_:g}" in done.output
    assert ("not independent evidence" in done.output) == (model.diffusion_ > 0)
    run_successfully(*files, tmp_path / "half", *small, "--diffusion", "0.5")
    model, X = netbic.load(tmp_path / "half"), netbic.io.read_expression(cohort / "expression.tsv").frame()
    assert model.diffusion_ == 0.5
    assert (model.graph_share_ == 0).all()
    again = model.get_params(deep=False) | {"column_graph": model.graphs_["columns"]}
    np.testing.assert_allclose(netbic.SparseGraphSVD(**again).fit(X).components_, model.components_, atol=1e-9)
    scores = run_successfully("score", tmp_path / "half", cohort / "expression.tsv").output.splitlines()
    np.testing.assert_allclose(float(scores[1].split("\t")[1]), netbic.get.scores_df(model, X).iloc[0, 0], rtol=1e-6)
    for wrong in (("--diffusion", "1"), ("--diffusion", "much"), ("--diffusion", "0.5", "--method", "sgSVD*")):
        assert run(*files, tmp_path / "no", *wrong).exit_code == 2
    assert "needs a network" in run("fit", cohort / "expression.tsv", "--out", tmp_path / "no", *wrong[:2]).output


@pytest.mark.usefixtures("reference")
def test_nothing_is_replaced_without_force(cohort, tmp_path):
    prior = tmp_path / "prior.npz"
    prior.write_text("mine")
    refused = run("graph", cohort / "reference.tsv", "--out", prior)
    assert refused.exit_code == 2
    assert "exists" in refused.output
    assert "--force" in refused.output
    assert prior.read_text() == "mine"
    run_successfully("graph", cohort / "reference.tsv", "--out", prior, "--force", "--quiet")
    assert netbic.io.read_network(prior).graph.n_edges > 0
    (tmp_path / "link.npz").symlink_to(cohort / "reference.tsv")
    itself = run("graph", cohort / "reference.tsv", "--out", tmp_path / "link.npz", "--force")
    assert "is an input (the reference data" in itself.output


@pytest.mark.usefixtures("reference")
def test_errors_say_what_to_do(cohort, tmp_path):
    prior = tmp_path / "prior.npz"
    many = run("graph", cohort / "reference.tsv", "--out", prior, "--neighbours", 29)
    assert "--neighbours 29 but X_other has 29 features: choose 1 to 28" in many.output
    text = run("graph", cohort / "reference.tsv", "--out", tmp_path / "prior.tsv")
    assert "does not end in .npz" in text.output
    lines = (cohort / "reference.tsv").read_text().splitlines()
    lines[1] = re.sub(r"\t[^\t]*$", "\tNA", lines[1])
    (tmp_path / "holes.tsv").write_text("\n".join(lines))
    holes = run("graph", tmp_path / "holes.tsv", "--out", prior)
    assert "1 value is missing (the first: gene 'G29', sample 'r24')" in holes.output
    assert not list(tmp_path.glob("*prior*"))


def test_names_in_the_file_are_checked(tmp_path):
    graph = netbic.Graph(np.ones((3, 3)) - np.eye(3), names=["TP53", "MDM2", "MDM4"])
    netbic.storage.write_network(graph, tmp_path / "g.npz")
    netbic.storage.write_network(netbic.Graph(graph.weights, names=[3, 5, 8]), tmp_path / "n.npz")
    assert netbic.io.read_network(tmp_path / "n.npz").graph.names.tolist() == [3, 5, 8]
    parts = dict(np.load(tmp_path / "g.npz"))
    wrong = ((["a", "b"], "3 nodes but 2 names"), (["a", "a", "b"], "given twice"), (np.zeros((3, 2)), "one name"))
    for names, message in wrong:
        np.savez(tmp_path / "bad.npz", **parts | {"names": np.array(names)})
        with pytest.raises(netbic.InputError, match=message):
            netbic.io.read_network(tmp_path / "bad.npz")
