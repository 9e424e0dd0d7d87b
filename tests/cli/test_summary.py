"""What netbic fit says about its modules: samples, sizes, the closest module, too few samples."""

import re

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.cli.fit import _cautions, summary_lines
from support.commands import run, run_successfully


def table_of(folder, name):
    return netbic.io.read_table(folder / f"{name}.tsv")


def written(path, values):
    n_samples, n_genes = values.shape
    names = pd.Index([f"G{k}" for k in range(n_genes)], name="gene")
    pd.DataFrame(values.T, index=names, columns=[f"s{k}" for k in range(n_samples)]).to_csv(path, sep="\t")
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Every gene follows the first module, 30 genes another one that is present in a third of the samples."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(120, 1)) @ rng.normal(size=(1, 500)) + rng.normal(size=(120, 500))
    values[:40, :30] += 4
    return written(tmp_path_factory.mktemp("data") / "expression.tsv", values)


@pytest.fixture(scope="module")
def fitted(data, tmp_path_factory):
    """The output of a fit with verdicts, and its folder."""
    out = tmp_path_factory.mktemp("fit") / "out"
    return run_successfully("fit", data, "--modules", 3, "--verdict", "--no-report", "--out", out).output, out


def test_a_line_says_in_which_samples_a_module_is_up_or_down(fitted):
    printed, out = fitted
    summary, samples = table_of(out, "summary"), table_of(out, "samples")
    assert set(summary["sample_kind"]) == {"groups", "gradient"}
    for row in summary.to_dict("records"):
        line = re.search(rf"^  module {row['module']}: (.*)", printed, re.M)[1]
        counts = samples.loc[samples["module"] == row["module"], "group"].value_counts()
        expected = [f"{side} in {counts[side]}" for side in ("up", "down") if side in counts]
        assert line.endswith(f", {', '.join(expected)} of 120 samples" if expected else "), gradient")


def test_modules_that_associations_name_are_listed_after_the_first_ten(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 300))
    data, out = written(tmp_path / "data.tsv", X), tmp_path / "out"
    run_successfully("fit", data, "--modules", 13, "--no-verdict", "--no-report", "--out", out)
    score = netbic.load(out).left_vectors_[:, 11]
    table = pd.DataFrame({"sample": [f"s{k}" for k in range(40)], "high": np.where(score > 0, "yes", "no")})
    table.to_csv(tmp_path / "samples.tsv", sep="\t", index=False)
    assert f"  and 3 more (see {out}/summary.tsv)" in summary_lines(out)
    run_successfully("associate", out, "--sample-info", tmp_path / "samples.tsv")
    assert "  module 12" in [line.split(":")[0] for line in summary_lines(out)]


def test_the_number_of_modules_and_their_sizes_come_from_the_data(data, tmp_path):
    done = run_successfully("fit", data, "--no-verdict", "--no-report", "--out", tmp_path / "out")
    model, X = netbic.load(tmp_path / "out"), netbic.io.read_expression(data).frame()
    assert f"number of modules: {netbic.SparseGraphSVD(random_state=0).fit(X).count_.sentence}\n" in done.output
    assert model.n_components_ == 2
    assert any(members.tolist() == [True] * 30 + [False] * 470 for members in model.columns_)


def test_the_closest_module_is_named_with_the_sign_of_the_correlation(fitted):
    summary, verdicts = (table_of(fitted[1], name) for name in ("summary", "verdicts"))
    assert summary["closest"].equals(verdicts["closest"])
    np.testing.assert_allclose(summary["correlation"][1:], verdicts["correlation"][1:], atol=1e-6)
    scores = np.corrcoef(table_of(fitted[1], "samples")["score"].to_numpy().reshape(3, 120))
    assert summary["closest"].isna().tolist() == [True, False, False]
    for k, other in enumerate(summary["closest"][1:] - 1, start=1):
        assert summary["correlation"][k] == pytest.approx(scores[k, other])
        assert abs(scores[k, other]) == pytest.approx(abs(scores[k, :k]).max())
    assert list(summary.columns)[-2:] == ["genes_up", "genes_down"]  # scripts may count columns
    assert summary["module"].tolist() == [1, 2, 3]


def test_groups_are_not_looked_for_among_selected_samples(data, tmp_path):
    done = run_successfully("fit", data, "--modules", 2, "--samples", 25, "--no-report", "--out", tmp_path / "out")
    summary, samples = (table_of(tmp_path / "out", name) for name in ("summary", "samples"))
    assert (summary["n_up"] + summary["n_down"]).tolist() == [25, 25]
    assert set(summary["sample_kind"]) == {"selected"}
    signs = np.sign(netbic.load(tmp_path / "out").left_vectors_.T).ravel()
    assert samples["group"].fillna("").tolist() == [{1: "up", -1: "down", 0: ""}[sign] for sign in signs]
    up, down = summary["n_up"][0], summary["n_down"][0]
    assert f", 25 samples selected ({up} up, {down} down)" in done.output


def test_few_samples_are_mentioned_before_the_search(data, tmp_path):
    few = written(tmp_path / "few.tsv", np.random.default_rng(0).normal(size=(19, 60)))
    done = run_successfully("fit", few, "--modules", 2, "--verdict", "--no-report", "--out", tmp_path / "out")
    first = done.output.splitlines()[2]  # after the size and the first names
    assert first == (
        "too few samples to tell: 19 samples, at least 20 are needed; "
        "modules cannot be judged, any of them may be noise"
    )
    assert "judging" not in done.output
    assert done.output.count("oo few samples") == 1
    assert set(table_of(tmp_path / "out", "verdicts")["verdict"]) == {"too few samples to tell"}
    assert "cannot be judged" not in run("fit", few, "--modules", 2, "--no-report", "--out", tmp_path / "no").output


def test_many_modules_for_the_samples_are_mentioned():
    assert list(_cautions(516, None, 172, True)) == []
    (line,) = _cautions(516, None, 173, True)
    assert line.startswith("up to 173 modules in 516 samples")
    (line,) = _cautions(40, pd.Series(np.arange(40) // 5), 1, True)
    assert line.startswith("too few samples to tell: 8 groups of samples, at least 20, or 3 groups of at least 10")
    # Each of four groups is left out in turn:
    assert list(_cautions(40, pd.Series(np.arange(40) // 10), 10, True)) == []
