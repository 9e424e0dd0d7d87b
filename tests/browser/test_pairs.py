"""The page about pairs in Chromium: it fits narrow windows, runs no script, and names stay text."""

import netbic
from support.pair_folders import TRAP, saved


def test_the_page_about_pairs(tmp_path, opened):
    """Both sides are beside each other where there is room, links go to the pairs, and markup in names is text."""
    saved(tmp_path, TRAP)
    netbic.report.write_report(tmp_path)
    for width, beside in ((1280, True), (400, False)):
        page = opened(tmp_path, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = [page.locator("details.module .scatter svg").nth(k).bounding_box() for k in (0, 1)]
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
        tables = page.locator("details.module").first.locator(".members")
        first, second = (tables.nth(k).bounding_box() for k in (0, 1))
        assert (first["x"] + first["width"] <= second["x"]) is beside
        assert (first["y"] + first["height"] <= second["y"]) is not beside
    page.locator(".glance a").nth(1).click()
    assert page.evaluate("location.hash") == "#pair-2"
    assert page.locator("#pair-2").bounding_box()["y"] < 300
    assert page.locator(".scatter circle title").first.text_content().startswith(f"{TRAP}: ")
    assert page.locator("img").count() == 0
    assert page.locator("bdi").get_by_text(TRAP, exact=True).count() > 0
