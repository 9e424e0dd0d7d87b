"""Heatmaps of the report: values, order, what is shown of large modules, size and colours."""

import base64
import io

import numpy as np
from PIL import Image

import netbic
from netbic.report.pictures import Heatmap, heatmaps_of, read_heatmaps


def test_heatmaps_hold_the_centred_values_in_the_order_of_weights(ordinary_folder):
    model = netbic.load(ordinary_folder)
    X = netbic.io.open_dataset(ordinary_folder.parent / "expression.parquet").X
    centred = (X - X.mean()).to_numpy()
    for number, heatmap in enumerate(read_heatmaps(ordinary_folder)):
        values = centred[np.ix_(heatmap.samples, heatmap.genes)].T
        shown = heatmap.values * (heatmap.limit / 127)
        np.testing.assert_allclose(shown, values.clip(-heatmap.limit, heatmap.limit), atol=0.51 * heatmap.limit / 127)
        assert np.all(np.diff(model.components_[number, heatmap.genes]) <= 0)
        assert np.all(np.diff(model.left_vectors_[heatmap.samples, number]) <= 0)
        assert set(heatmap.genes) == set(np.flatnonzero(model.columns_[number]))


def test_heatmaps_of_sparse_and_incomplete_data(tmp_path):
    X = netbic.simulate.paper(0.02, random_state=0).X
    incomplete = X.copy()
    incomplete[3, 5] = np.nan
    model = netbic.SparseGraphSVD(1, n_rows=60, n_columns=100, missing="ignore").fit(incomplete)
    netbic.report.write_heatmaps(tmp_path, model, incomplete)
    (heatmap,) = read_heatmaps(tmp_path)
    missing = np.argwhere(heatmap.values == -128)
    assert [(heatmap.genes[gene], heatmap.samples[sample]) for gene, sample in missing] in ([], [(5, 3)])
    assert model.rows_[0][3] == bool(len(missing))


def test_of_large_modules_the_heaviest_genes_and_samples_at_equal_distances_are_shown():
    X = np.random.default_rng(0).normal(size=(700, 500))
    model = netbic.SparseGraphSVD(1, n_rows=600, column_penalty=netbic.Dense())
    (heatmap,) = heatmaps_of(model.fit(X), X)
    assert heatmap.values.shape == (300, 400)
    for weights, shown in ((model.components_[0], heatmap.genes), (model.left_vectors_[:, 0], heatmap.samples)):
        assert np.abs(weights)[shown].min() >= np.delete(np.abs(weights), shown).max()
    model = netbic.SparseGraphSVD(12, n_columns=50)
    everyone = heatmaps_of(model.fit(X), X)
    ranks = (-model.left_vectors_[:, 0]).argsort().argsort()[everyone[0].samples]
    assert (ranks[0], ranks[-1]) == (0, 699)
    assert set(np.diff(ranks)) == {1, 2}
    many = heatmaps_of(netbic.SparseGraphSVD(12, n_columns=250).fit(X), X)
    assert 780_000 < sum(heatmap.values.size for heatmap in many) < 820_000  # the report stays small


def test_red_is_above_blue_below_and_grey_missing():
    values = np.array([[127, -127, 0, -128]], dtype=np.int8)
    picture = Heatmap(values, 1.0, np.arange(1), np.arange(4)).picture
    image = Image.open(io.BytesIO(base64.b64decode(picture.split(",")[1]))).convert("RGB")
    (high, low, middle, missing) = (np.array(image.getpixel((x, 0)), dtype=int) for x in range(4))
    assert high[0] > high[2] + 60
    assert low[2] > low[0] + 60
    assert middle.min() > 240
    assert len(set(missing)) == 1


def test_names_beside_a_heatmap_are_those_of_the_leading_genes():
    genes, weights = np.arange(100, 400), np.linspace(1, -0.5, 300)
    order = np.argsort(-np.abs(weights))
    members = genes[order], weights[order], [f"g{k}" for k in genes[order]]
    found = Heatmap(np.zeros((300, 2), np.int8), 1.0, genes, np.arange(2)).row_names(*members)
    assert 12 <= len(found) <= 20
    assert found[0] == (0.17, "g100")
    assert np.diff([place for place, _ in found]).min() >= 5 - 0.02
    few = Heatmap(np.zeros((4, 2), np.int8), 1.0, genes[:4], np.arange(2)).row_names(*members)
    assert few == [(12.5, "g100"), (37.5, "g101"), (62.5, "g102"), (87.5, "g103")]
