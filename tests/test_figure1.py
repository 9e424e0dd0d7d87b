"""Figure 1's numbers, on fewer replicates than benchmarks/figure1.py (`make figure1`) uses."""

from figure1 import table


def test_sensitivities_agree_with_the_reference():
    summary = table(100, gammas=(0.04, 0.06), n_jobs=1)
    off = summary[summary["difference"].abs() > 0.02]
    assert off.empty, off
    wide = summary.pivot_table(index=["signs", "gamma"], columns="method", values="mean")
    assert (wide.loc["random", "sgSVD*"] > wide.loc["random", "sgSVD"] + 0.15).all()
    assert (wide["sgSVD*"] > wide["L0SVD"]).all()
