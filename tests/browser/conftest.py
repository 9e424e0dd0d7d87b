"""A browser, and reports that it opens."""

import os
import shutil

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
REQUIRED = os.environ.get("NETBIC_REQUIRE_BROWSER") == "1"


@pytest.fixture(scope="session", autouse=True)
def _has_a_browser():
    """Tests are skipped without a browser, unless it is required."""
    if not REQUIRED:
        if CHROMIUM is None:
            pytest.skip("needs a browser: apt-get install chromium")
        pytest.importorskip("playwright", reason="needs playwright: pip install playwright")


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    assert CHROMIUM, "NETBIC_REQUIRE_BROWSER=1 but there is no chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        # Containers often have no sandbox; the pages are our own files.
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser):
    """Opens a report; at the end there may be no error message, no request and no policy violation."""
    contexts, complaints = [], []

    def open_report(folder, width=1200, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, reduced_motion="reduce", **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url) if outside(request.url) else None)
        if options.get("java_script_enabled", True):
            page.add_init_script(
                "addEventListener('securitypolicyviolation', (event) => console.log(event.violatedDirective))"
            )
        page.goto((folder / "report.html").as_uri())
        return page

    def outside(address):
        return not address.startswith(("data:", "blob:")) and not address.endswith("/report.html")

    yield open_report
    for context in contexts:
        context.close()
    assert complaints == []
