"""The report in Chromium: sorting, searching, charts, downloads, printing, and names that contain markup."""

import numpy as np
import pandas as pd
import pytest

import netbic
from support import report_folders
from support.report_folders import TRAP, as_displayed
from support.report_pages import go_to_module, tip


def column(page, name):
    at = page.locator(".sortable thead th").evaluate_all(f"all => all.findIndex((th) => th.dataset.name === '{name}')")
    return page.locator(f".sortable tbody td:nth-child({at + 1})").evaluate_all(
        "all => all.map((td) => td.dataset.value)"
    )


def header(page, name):
    return page.locator(f'.sortable th[data-name="{name}"]')


def test_the_table_sorts_both_ways_by_mouse_and_keyboard(ordinary_folder, opened):
    page = opened(ordinary_folder)
    for name in ("graph_share", "degree_fold_change"):
        header(page, name).get_by_role("button").click()
        assert header(page, name).get_attribute("aria-sort") == "descending"
        values = np.array(column(page, name), dtype=float)
        np.testing.assert_array_equal(values, np.sort(values)[::-1])
        header(page, name).get_by_role("button").click()
        assert header(page, name).get_attribute("aria-sort") == "ascending"
        np.testing.assert_array_equal(np.array(column(page, name), dtype=float), np.sort(values))
    header(page, "top_genes").get_by_role("button").click()
    assert column(page, "top_genes") == sorted(column(page, "top_genes"), key=str.lower)
    assert page.locator(".sortable th[aria-sort]").count() == 1
    header(page, "n_edges").get_by_role("button").focus()
    page.keyboard.press("Tab")  # a focus that came by keyboard is seen, and shows a hint
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert tip(page) == "edges of the network between members"
    page.keyboard.press("Enter")
    values = np.array(column(page, "n_edges"), dtype=float)
    np.testing.assert_array_equal(values, np.sort(values)[::-1])
    page.evaluate("document.activeElement.blur()")
    assert not page.locator("#tip").is_visible()


def test_the_search_finds_all_modules_of_a_gene_and_scores_of_a_sample(ordinary_folder, folder_of_all_samples, opened):
    page, members = opened(ordinary_folder), netbic.io.read_table(ordinary_folder / "modules.tsv")
    genes = members[members["axis"] == "gene"]
    listed = genes.loc[genes["module"] == 1, "name"].head(15).tolist()
    gene = max(listed, key=genes["name"].tolist().count)
    page.get_by_label("Search for a gene or sample").press_sequentially(gene.lower())
    first = page.locator("#found li").first
    assert first.locator("bdi").inner_text() == gene
    links = first.locator("a").evaluate_all("all => all.map((a) => a.getAttribute('href'))")
    assert links == [f"#module-{number}" for number in genes.loc[genes["name"] == gene, "module"]]
    page.keyboard.press("Enter")  # to the first answer
    page.keyboard.press("Enter")  # and there
    module = page.locator(f"details:has({links[0]})")
    assert module.get_attribute("open") is not None
    assert module.locator("bdi").get_by_text(gene, exact=True).first.is_visible()
    table = netbic.io.read_table(folder_of_all_samples / "samples.tsv")
    own = table[table["sample"] == table.loc[table["group"].isin(["up", "down"]), "sample"].iloc[0]]
    page = opened(folder_of_all_samples)
    page.get_by_label("Search for a gene or sample").fill(own["sample"].iloc[0])
    answers = page.locator("#found li").first.locator("a").all_inner_texts()
    for text, module, score, group in zip(answers, own["module"], own["score"], own["group"].fillna(""), strict=True):
        number, _, label = text.removeprefix(f"module {module} (score ")[:-1].partition(", ")
        assert label == group
        assert float(number.replace("\N{MINUS SIGN}", "-")) == pytest.approx(score, rel=0.01)


def test_charts_show_numbers_and_lead_to_modules_by_mouse_and_keyboard(ordinary_folder, opened):
    page, summary = opened(ordinary_folder), netbic.io.read_table(ordinary_folder / "summary.tsv")
    share = summary["explained_variance_ratio"][1]
    bars, cells = (page.locator(f'[data-name="{name}"] a[href="#module-2"]') for name in ("variance", "samples"))
    bars.locator("path").hover()
    assert f"variance explained: {share:.2%}" in tip(page)
    assert summary["top_genes"][1] in tip(page)
    bars.locator("path").click()
    assert page.locator("details.module[open]").count() == 1
    assert page.locator("details[open] #module-2").is_visible()
    page.get_by_role("button", name="Close all").click()
    cells.locator("path").nth(2).hover()
    assert tip(page).startswith("modules 2 and 4\n")
    cells.locator("path").nth(2).click()  # the address is the same
    assert page.locator("details[open] #module-2").is_visible()
    page.get_by_role("button", name="Close all").click()
    page.locator('[data-name="samples"] a').nth(2).focus()
    page.keyboard.press("Tab")
    assert tip(page).startswith("module 4, closest to module ")
    page.keyboard.press("Enter")
    assert page.locator("details[open] #module-4").is_visible()


def test_the_network_shows_names_and_weights_by_mouse_and_keyboard(ordinary_folder, opened):
    page, members = opened(ordinary_folder), netbic.io.read_table(ordinary_folder / "modules.tsv")
    go_to_module(page, 1)
    own = members[(members["module"] == 2) & (members["axis"] == "gene")].reset_index(drop=True)

    def shows(at):
        text = tip(page)
        return own["name"][at] in text and f"{abs(own['weight'][at]):#.3g}" in text

    circle = page.locator("details[open] circle").first
    circle.hover(force=True)
    assert shows(int(circle.get_attribute("data-at")))
    assert page.locator("details[open] .touched").get_attribute("d").startswith("M")
    drawn = page.locator("details[open] circle").evaluate_all("all => all.map((one) => Number(one.dataset.at))")
    page.locator("details[open] .network svg").focus()
    for at in sorted(drawn)[:3]:  # heaviest first
        page.keyboard.press("ArrowRight")
        assert shows(at)
        assert page.locator("circle.reached").get_attribute("data-at") == str(at)
    page.keyboard.press("ArrowLeft")
    assert shows(sorted(drawn)[1])
    page.keyboard.press("Tab")
    assert page.locator("circle.reached").count() == 0


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_overflows_narrow_or_wide_windows(width, hostile_folder, labelled_folder, opened):
    of_network = ["details .network svg", "details .evidence table"]
    for folder, further in ((hostile_folder, of_network), (labelled_folder, [".answers tbody"])):
        page = opened(folder, width)
        page.get_by_role("button", name="Open all").click()
        page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for text in page.locator(".chart text").all():
            assert text.bounding_box()["height"] >= 10  # legible
        for selector in ["h1", "#find", "details .heatmap .values", *further]:
            box = page.locator(selector).first.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width + 1
            assert box["width"] > 0.15 * width
    if width == 400:  # wide tables scroll inside their boxes
        inner, outer = page.locator("#modules .wide").evaluate("box => [box.scrollWidth, box.clientWidth]")
        assert inner > outer
        cells = [cell.bounding_box() for cell in page.locator(".grid tbody tr").first.locator("td").all()]
        assert sum(cell["x"] + cell["width"] <= 400 for cell in cells) >= 3


def test_the_dark_theme_applies_to_charts_and_printed_pages_are_white(ordinary_folder, opened):
    page = opened(ordinary_folder, color_scheme="dark")

    def lightness(name):
        return sum(map(int, page.evaluate(f"getComputedStyle(document.body).{name}")[4:-1].split(",")))

    assert lightness("color") > 500 > 200 > lightness("backgroundColor")
    bar = page.locator('[data-name="variance"] path').last

    def colour():
        return bar.evaluate("bar => getComputedStyle(bar).fill")

    dark = colour()
    for media, scheme, same in (("screen", "light", False), ("screen", "dark", True), ("print", "dark", False)):
        page.emulate_media(media=media, color_scheme=scheme)
        assert (colour() == dark) == same
    assert lightness("backgroundColor") > 500 > 200 > lightness("color")


def test_hostile_names_are_shown_and_never_executed(hostile_folder, opened, browser, tmp_path):
    page = opened(hostile_folder)
    assert f"<img src=x onerror={TRAP}>'\"" in page.locator("h1").inner_text()
    page.get_by_role("button", name="Open all").click()
    shown = page.locator("bdi").evaluate_all("all => all.map((one) => one.textContent)")
    assert set(map(as_displayed, report_folders.HOSTILE)) <= set(shown)
    for name in report_folders.HOSTILE:
        page.locator("#find").fill(name)
        assert page.locator("#found li bdi").first.evaluate("one => one.textContent") == as_displayed(name)
    drawn = page.locator("details.module").first.locator("circle")
    for at in range(min(drawn.count(), 20)):
        drawn.nth(at).hover(force=True)
    assert page.evaluate("window.trapped") is None
    assert page.evaluate("document.scripts.length") == 2
    text = (hostile_folder / "report.html").read_text()  # code that is inserted into the page does not run either
    (tmp_path / "report.html").write_text(
        text.replace("<main>", f"<main><script>{TRAP}</script><img src=x onerror='{TRAP}'>")
    )
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    assert page.locator(".sortable tbody tr").count() == 4
    assert page.evaluate("window.trapped") is None
    page.close()


def test_downloads_contain_what_is_shown_and_no_formulas(hostile_folder, opened, tmp_path):
    page, members = opened(hostile_folder), netbic.io.read_table(hostile_folder / "modules.tsv")

    def saved(label, name):
        with page.expect_download() as download:
            page.get_by_role("button", name=label).click()
        assert download.value.suggested_filename == name
        download.value.save_as(tmp_path / name)
        return pd.read_csv(tmp_path / name, sep="\t", keep_default_na=False, dtype={"name": str})

    table = saved("Download this table (TSV)", "modules-table.tsv")
    strengths = netbic.io.read_table(hostile_folder / "summary.tsv")["singular_value"]
    np.testing.assert_allclose(table["singular_value"], strengths)
    assert not table.astype(str).apply(lambda column: column.str.match(r"\s*[=+@]|-\D")).any(axis=None)
    found = saved("Download all members (TSV)", "members.tsv")
    assert found[["module", "axis"]].equals(members[["module", "axis"]])
    np.testing.assert_allclose(found["weight"], members["weight"], rtol=1e-3)  # numbers stay numbers
    expected = [f"'{name}" if name.strip()[0] in "=+-@" else name for name in members["name"]]
    assert found["name"].tolist() == expected
    assert "'=cmd|' /C calc'!A0" in expected
    go_to_module(page, 2)
    own = saved("Download members of module 3 (TSV)", "module-3.tsv")
    assert set(own["module"]) == {3}
