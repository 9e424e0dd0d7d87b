"""The tutorials on real data show what their commands and their code print."""

import pytest

from support.pages import compare, run_page, same
from support.tutorials import DONORS, link_data, text_of


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A new folder, in which the page's code can draw without a screen."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    plt.close("all")


@pytest.mark.nightly
@pytest.mark.parametrize(("page", "fewest"), [("breast-tumours", 10), ("single-cells", 7)])
def test_the_outputs_are_as_shown(folder, real_data, page, fewest):
    link_data(page, folder, real_data)
    assert run_page(text_of(page).partition(DONORS)[0]) >= fewest


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:treatment is the same in all samples of one donor")
def test_the_simulated_donors_are_as_shown(folder):
    assert run_page(text_of("single-cells").partition(DONORS)[2]) >= 2


def test_outputs_are_compared_by_line_and_number():
    compare("a\n...\nc 0.5\n", "a\nb\n\nc  0.4\n")
    for shown, printed in [("a\nc", "a\nb\nc"), ("a", "a\nb"), ("a\n...\nc", "a\nb"), ("a 0.50", "a 0.52"), ("a", "")]:
        with pytest.raises(AssertionError, match="the page"):
            compare(shown, printed)
    assert same("q = 4e-48", "q = 5e-48")
    assert not same("q = 4e-48", "q = 4e-47")
    assert not same("module 1", "module 2")
