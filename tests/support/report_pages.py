"""What tests do with a report in a browser."""


def tip(page):
    page.locator("#tip").wait_for(timeout=5000)
    return page.locator("#tip").inner_text()


def go_to_module(page, number):
    """Open a module (from 0) from the table and wait until its pictures respond to the mouse."""
    page.locator(f'.sortable a[href="#module-{number + 1}"]').click()
    page.locator(f"#module-{number + 1}").wait_for()
    # A locator: the page's policy forbids the evaluation of text, which waiting for a function may need.
    page.locator(f"#module-{number + 1} circle title").first.wait_for(state="detached")
