"""The page about pairs in Chromium: it fits narrow windows, runs no script, and names stay text."""

import pytest

import netbic
from support.pair_folders import TRAP, saved


@pytest.fixture(scope="module")
def pair_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    saved(folder)
    netbic.report.write_report(folder)
    return folder


def test_both_sides_are_beside_each_other_where_there_is_room_and_below_where_not(pair_folder, opened):
    for width, beside in ((1280, True), (400, False)):
        page = opened(pair_folder, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = [page.locator("details.module .scatter svg").nth(k).bounding_box() for k in (0, 1)]
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
        tables = page.locator("details.module").first.locator(".members")
        first, second = (tables.nth(k).bounding_box() for k in (0, 1))
        assert (first["x"] + first["width"] <= second["x"]) is beside
        assert (first["y"] + first["height"] <= second["y"]) is not beside


def test_links_go_to_the_pairs_and_points_have_names(pair_folder, opened):
    page = opened(pair_folder)
    page.locator(".glance a").nth(1).click()
    assert page.evaluate("location.hash") == "#pair-2"
    assert page.locator("#pair-2").bounding_box()["y"] < 300
    assert page.locator(".scatter circle title").first.text_content().startswith("g0: ")


def test_markup_in_names_is_text(tmp_path, opened):
    saved(tmp_path, TRAP)
    netbic.report.write_report(tmp_path)
    page = opened(tmp_path)
    assert page.locator("img").count() == 0
    assert page.locator("bdi").get_by_text(TRAP, exact=True).count() > 0
