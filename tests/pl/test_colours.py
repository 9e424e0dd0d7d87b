"""Colours: those of matplotlib for numbers, and for labels and modules some that everybody can tell apart."""

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_rgb

from netbic.pl.base import CLEAR, LABELS, MISSING, MODULES, OTHER, module_colours
from netbic.pl.colours import diverging, sequential

# Linear RGB as it is seen without red or green cones (Machado, Oliveira and Fernandes 2009, severity 1).
VISION = {
    "all cones": np.eye(3),
    "without red cones": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "without green cones": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def lab(colours, vision):
    """CIE L*a*b* coordinates (D65)."""
    rgb = np.array([to_rgb(colour) for colour in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ VISION[vision].T, 0, 1) @ XYZ.T / XYZ.sum(axis=1)
    f = np.where(seen > (6 / 29) ** 3, np.cbrt(seen), seen / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=-1)


def difference(first, second):
    """CIEDE2000 (Sharma, Wu and Dalal 2005)."""
    (l1, a1, b1), (l2, a2, b2) = np.moveaxis(first, -1, 0), np.moveaxis(second, -1, 0)
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * np.sqrt(mean**7 / (mean**7 + 25.0**7))
    c1, c2 = np.hypot(a1 * stretch, b1), np.hypot(a2 * stretch, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a * stretch)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = np.where(c1 * c2 == 0, 0, (h2 - h1 + 180) % 360 - 180)
    hue = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    h, c, light = (h1 + turn / 2) % 360, (c1 + c2) / 2, (l1 + l2) / 2 - 50
    t = 1 + sum(
        weight * np.cos(np.radians(times * h + shift))
        for weight, times, shift in ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.20, 4, -63))
    )
    lightness, chroma = (l2 - l1) / (1 + 0.015 * light**2 / np.sqrt(20 + light**2)), (c2 - c1) / (1 + 0.045 * c)
    hue = hue / (1 + 0.015 * c * t)
    rotation = np.sin(np.radians(60 * np.exp(-(((h - 275) / 25) ** 2)))) * -2 * np.sqrt(c**7 / (c**7 + 25.0**7))
    return np.sqrt(lightness**2 + chroma**2 + hue**2 + rotation * chroma * hue)


def differences(first, second, vision):
    return difference(lab(first, vision)[:, None], lab(second, vision)[None])


def test_colours_are_those_of_matplotlib():
    shares = np.linspace(0, 1, 10_001)
    for found, name in ((diverging(shares), "RdBu_r"), (sequential(shares), "cividis")):
        assert (found == np.rint(255 * colormaps[name](shares)[:, :3])).all()


def test_the_difference_of_colours_is_that_of_the_article():
    for first, second, expected in (
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ):
        assert difference(np.array(first, float), np.array(second, float)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("vision", VISION)
def test_labels_can_be_told_apart(vision):
    """Differences above 10 are seen at a glance; the colours of yellow and orange that were there before had 11."""
    own = differences(LABELS[:CLEAR], LABELS[:CLEAR], vision) + 99 * np.eye(CLEAR)
    assert own.min() > 16
    assert differences(LABELS[:CLEAR], [OTHER, MISSING, "white"], vision).min() > 10
    many = differences(LABELS, LABELS, vision) + 99 * np.eye(len(LABELS))
    assert many.min() > 8
    neighbours = [differences([MODULES[k - 1]], [colour], vision).item() for k, colour in enumerate(MODULES)]
    assert min(neighbours) > 16


def test_thirty_modules_have_thirty_colours_and_numbers_that_can_be_read_on_them():
    colours, written = zip(*map(module_colours, range(30)), strict=True)
    assert colours[:10] == MODULES
    assert (differences(colours, colours, "all cones") + 99 * np.eye(30)).min() > 4
    lightness = np.abs(lab(colours, "all cones")[:, 0] - lab(written, "all cones")[:, 0])
    assert lightness.min() > 35


def test_modules_have_other_colours_than_labels():
    assert differences(MODULES, LABELS[:CLEAR], "all cones").min() > 10
