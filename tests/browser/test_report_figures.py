"""Figures and lists of the report in Chromium: survival curves, strips, copying, and saving as SVG and PNG."""

import io
import xml.etree.ElementTree as ET

import numpy as np
from PIL import Image

import netbic
from netbic.report.contents import gather
from support.report_folders import HOSTILE, SITES, TRAP
from support.report_pages import go_to_module, tip

SVG = "{http://www.w3.org/2000/svg}"
TIME = f"<b>days</b>{TRAP}"


def opened_module(page, number):
    """A module of a report without a network, opened."""
    page.locator(f'.glance a[href="#module-{number + 1}"]').click()
    module = page.locator(f"#module-{number + 1}")
    module.locator(".save button").first.wait_for(state="attached")
    return module


def saved(page, button):
    """The file that a button saves, and its name."""
    with page.expect_download() as download:
        button.click()
    with open(download.value.path(), "rb") as file:
        return file.read(), download.value.suggested_filename


def test_tables_pictures_members_and_printing_need_no_javascript(labelled_folder, opened):
    page = opened(labelled_folder, java_script_enabled=False)
    assert page.locator(".sortable tbody tr").count() == 2
    assert not page.locator("#find").is_visible()
    assert page.locator(".chart svg rect").first.is_visible()
    assert page.locator('[data-name="variance"] a[href="#module-2"] title').text_content().startswith("module 2: ")
    assert not page.locator("#module-2 .heatmap .values").is_visible()
    page.locator("details.module > summary").first.click()
    for name in netbic.io.read_table(labelled_folder / "modules.tsv")["name"][:3]:  # the heaviest genes
        assert page.locator("details[open] .members bdi").get_by_text(name, exact=True).is_visible()
    curves = page.locator("#module-1 .survival svg")
    assert not curves.is_visible()
    page.locator("#module-1 .plots summary").get_by_text(TIME).click()
    text, around = curves.text_content(), curves.bounding_box()
    table = netbic.io.read_table(labelled_folder / "associations.tsv")
    row = table[(table["module"] == 1) & table["test"].str.startswith("log-rank")].iloc[0]
    assert f"{row['effect_name']} {row['effect']:.2f} ({row['ci_low']:.2f} to {row['ci_high']:.2f})" in text
    assert "at risk" in text
    for box in [one.bounding_box() for one in curves.locator("text").all()]:
        assert around["x"] - 1 <= box["x"]
        assert box["x"] + box["width"] <= around["x"] + around["width"] + 1
    assert page.locator("#module-1 .save, #module-1 [data-copy]:visible").count() == 0
    page.emulate_media(media="print")
    for number in (1, 2):
        assert page.locator(f"#module-{number} .heatmap .values").bounding_box()["height"] > 100
    page = opened(labelled_folder)
    counts = {"details.module[open]": 2, ".plots details[open]": page.locator(".plots details.found").count()}
    for event, shown in (("beforeprint", 1), ("afterprint", 0)):  # opens modules and plots of associations, then closes
        page.evaluate(f"dispatchEvent(new Event('{event}'))")
        for selector, count in counts.items():
            assert page.locator(selector).count() == shown * count
    assert min(counts.values()) > 0


def test_hovering_the_heatmap_shows_gene_value_sample_group_and_labels(labelled_folder, opened):
    module, own = opened_module(opened(labelled_folder), 0), gather(labelled_folder).modules[0]
    values, strips = module.locator(".values"), module.locator(".strip").all()
    values.scroll_into_view_if_needed()
    box = values.bounding_box()
    assert len(strips) >= 4
    for strip in strips:
        assert (strip.bounding_box()["x"], strip.bounding_box()["width"]) == (box["x"], box["width"])
    row = own.heatmap.values.shape[0] // 2
    module.page.mouse.move(box["x"] + 1, box["y"] + box["height"] / 2 + 1)
    shown, info = tip(module.page), netbic.io.read_table(labelled_folder / "sample_info.tsv")
    first = info.iloc[int(np.argmax(own.scores.scores))]
    assert netbic.load(labelled_folder).names_["columns"][own.heatmap.genes[row]] in shown
    assert f"{abs(own.heatmap.values[row, 0] * own.heatmap.limit / 127):#.3g}".rstrip(".") in shown
    assert first["sample"] in shown
    assert ", up" in shown
    for name in {*module.locator(".keys b").all_inner_texts()} & {"type", "site", "grade"}:
        assert f"{first[name]}" in shown
    assert module.locator(".scores rect.up").count() > 0
    assert module.page.evaluate("window.trapped") is None


def test_copying_gives_one_name_per_line_and_says_so(hostile_folder, opened):
    page = opened(hostile_folder, permissions=["clipboard-read", "clipboard-write"])
    go_to_module(page, 0)
    members = netbic.io.read_table(hostile_folder / "modules.tsv").query("module == 1 and axis == 'gene'")
    refuse = "() => { navigator.clipboard.writeText = () => Promise.reject(new Error()); }"
    for refused in (False, True):  # the usual way, and the one for browsers that refuse it
        if refused:
            page.evaluate("navigator.clipboard.writeText('')")
            page.evaluate(refuse)
        copied = list[str]()
        for button in page.locator("#module-1 [data-copy=gene]").all():
            button.click()
            page.locator("#module-1 [role=status]").get_by_text("Copied").wait_for()
            assert page.evaluate("document.activeElement.dataset.side") == button.get_attribute("data-side")
            copied += page.evaluate("navigator.clipboard.readText()").splitlines()
        assert f"'{HOSTILE[-2]}" in copied
        assert not [name for name in copied if name.lstrip()[0] in "=+-@"]  # no name is a formula
        assert {name.removeprefix("'") for name in copied} >= {name for name in members["name"] if name.isalnum()}


def test_figures_are_saved_on_white(hostile_folder, opened):
    page = opened(hostile_folder, color_scheme="dark")
    go_to_module(page, 0)
    for kind in ("heatmap", "network"):
        figure = page.locator(f"#module-1 [data-save={kind}]")
        content, name = saved(page, figure.get_by_role("button", name="SVG"))
        assert name == f"module-1-{kind}.svg"
        drawing = ET.fromstring(content)
        assert drawing.find(f"{SVG}rect").get("fill") == "white"
        assert not drawing.findall(f".//{SVG}script")
        assert not [each for each in drawing.iter() if any(key.startswith("on") for key in each.attrib)]
    circles = drawing.findall(f".//{SVG}circle")
    assert len(circles) == page.locator("#module-1 circle").count()
    assert {"rgb(33, 102, 172)", "rgb(178, 24, 43)"} & {circle.get("fill") for circle in circles}
    content, name = saved(page, figure.get_by_role("button", name="PNG"))
    assert name == "module-1-network.png"
    image = Image.open(io.BytesIO(content)).convert("RGB")
    assert image.width >= 1600
    assert image.getpixel((1, 1)) == (255, 255, 255)
    assert len(image.getcolors(1 << 24)) > 10


def test_survival_curves_box_plots_and_charts_are_saved_with_their_words(labelled_folder, opened):
    page = opened(labelled_folder, color_scheme="dark")
    module = opened_module(page, 0)
    module.locator(".plots summary").evaluate_all("all => all.forEach((one) => one.click())")
    content, name = saved(page, module.locator(".survival").get_by_role("button", name="SVG"))
    assert name == "module-1-survival-b-days-b-window-trapped-1.svg"
    drawing = ET.fromstring(content)
    assert "log-rank p" in "".join(drawing.itertext())
    strokes = {path.get("stroke") for path in drawing.iter(f"{SVG}path")}
    assert "rgb(178, 24, 43)" in strokes
    figure = module.locator(".plots details", has_text="Scores by site").locator("figure")
    drawing = ET.fromstring(saved(page, figure.get_by_role("button", name="SVG"))[0])
    assert SITES[0] in "".join(drawing.itertext())
    assert len(drawing.findall(f"{SVG}svg")) == 3
    figure = page.locator('[data-save=chart][data-name="samples"]')
    content, name = saved(page, figure.get_by_role("button", name="SVG"))
    assert name == "chart-samples.svg"
    assert "absolute correlation" in "".join(ET.fromstring(content).itertext())
    content, name = saved(page, figure.get_by_role("button", name="PNG"))
    image = Image.open(io.BytesIO(content)).convert("RGB")
    assert image.getpixel((1, 1)) == (255, 255, 255)
    assert len(image.getcolors(1 << 24)) > 10
    assert page.evaluate("window.trapped") is None
