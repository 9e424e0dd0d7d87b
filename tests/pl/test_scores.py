"""Histograms of scores by group."""

import anndata
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.colors import same_color

import netbic
from netbic import pl
from netbic.pl.base import GREY, NEGATIVE, POSITIVE


@pytest.fixture(scope="module")
def clear():
    return netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)


@pytest.fixture(scope="module")
def clear_model(clear):
    return netbic.SparseGraphSVD(2, n_columns=60).fit(clear.expression)


def counts(ax):
    """Numbers of samples by colour, from the heights of the bars."""
    totals = {}
    for container in ax.containers:
        colour = container.patches[0].get_facecolor()
        name = next(name for name in (NEGATIVE, GREY, POSITIVE) if same_color(colour, name))
        totals[name] = sum(bar.get_height() for bar in container.patches)
    return totals


def test_bars_count_the_samples_of_each_group(clear, clear_model):
    for module, kind in enumerate(("groups", "gradient")):
        ax = pl.scores(clear_model, clear.expression, module)
        table = netbic.selection.sample_groups(clear_model, clear.expression)
        own = table.loc[table["module"] == module, "group"].value_counts()
        shown = counts(ax)
        for group, colour in (("up", POSITIVE), ("down", NEGATIVE), ("", GREY)):
            assert shown.get(colour, 0) == own.get(group, 0)
        assert ax.get_title(loc="left").startswith(f"Module {module + 1}: ")
        assert ("gradient" in ax.get_title(loc="left")) == (kind == "gradient")
        assert (ax.get_legend() is None) == (kind == "gradient")


def test_the_same_for_arrays_sparse_matrices_other_orders_and_anndata(clear, clear_model):
    X = clear.expression
    shuffled = X.iloc[:, np.random.default_rng(0).permutation(X.shape[1])]
    data = anndata.AnnData(X.to_numpy())
    data.obs_names, data.var_names = X.index, X.columns
    netbic.tl.modules(data, n_components=2, n_columns=60)
    expected = counts(pl.scores(clear_model, X))
    for given in ((clear_model, X.to_numpy()), (clear_model, sp.csr_array(X)), (clear_model, shuffled), (data,)):
        assert counts(pl.scores(*given)) == expected
    few = counts(pl.scores(clear_model, X.iloc[:50]))  # other samples of the same genes
    assert sum(few.values()) == 50


@pytest.mark.parametrize("plot", [pl.scores, pl.heatmap])
def test_a_module_in_place_of_the_data_is_an_error(clear_model, clear, plot):
    for source in (clear_model, netbic.tl.to_anndata(clear_model, clear.expression)):
        with pytest.raises(TypeError, match="X=1: the second argument is the data; for one module use module=1"):
            plot(source, 1)


@pytest.mark.parametrize("plot", [pl.loadings, pl.network])
def test_data_in_place_of_the_module_are_an_error_of_one_line(clear_model, clear, plot):
    with pytest.raises(TypeError, match=r"^module=DataFrame: expected an integer; modules are numbered from 0$"):
        plot(clear_model, clear.expression)


def test_bad_input_is_named(clear, clear_model):
    with pytest.raises(netbic.InputError, match="module=2 but the model has modules 0 to 1"):
        pl.scores(clear_model, clear.expression, 2)
    with pytest.raises(netbic.InputError, match="X is missing"):
        pl.scores(clear_model)
    with pytest.raises(ValueError, match="n_bins=0: at least 1"):
        pl.scores(clear_model, clear.expression, n_bins=0)
