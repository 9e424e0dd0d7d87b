"""The colours of reports are those of matplotlib, which a report does not load."""

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from netbic.pl.colours import MANY, diverging, sequential


def test_colours_are_those_of_matplotlib():
    shares = np.linspace(0, 1, 10_001)
    for found, name in ((diverging(shares), "RdBu_r"), (sequential(shares), "cividis")):
        assert (found == np.rint(255 * colormaps[name](shares)[:, :3])).all()
    assert list(MANY) == [to_hex(colormaps["tab20"](k)) for k in range(20)]
