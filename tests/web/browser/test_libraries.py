"""The vendored libraries and the icons in Chromium, under the content security policy of every page."""

from __future__ import annotations

from playwright.async_api import Page, expect

from coaching_service.web import static_files
from tests.web.browser.conftest import OpenPage
from tests.web.test_static_files import render_macro

_LOAD = """tags => {
  const template = document.createElement("template");
  template.innerHTML = tags;
  return Promise.all([...template.content.children].map(tag => new Promise((resolve, reject) => {
    const copy = document.createElement(tag.localName);
    for (const { name, value } of tag.attributes) copy.setAttribute(name, value);
    if (tag.localName === "meta") resolve();
    copy.onload = resolve;
    copy.onerror = reject;
    document.head.append(copy);
  })));
}"""


async def load(page: Page, *names: str) -> None:
    """Open a page and add the tags of libraries to it."""
    await page.goto("/app/sign-in")
    await page.evaluate(_LOAD, render_macro("library_tags", names))


async def show(page: Page, html: str) -> None:
    """Replace the content of the page."""
    await page.evaluate("html => { document.querySelector('main').innerHTML = html }", html)


async def test_icons_are_drawn(open_page: OpenPage) -> None:
    page = await open_page()
    await page.goto("/app/sign-in")
    drawn = "() => [...document.querySelectorAll('use')].every(use => use.getBBox().width > 8)"
    await show(page, render_macro("icon", "house") + render_macro("icon", "trash-2", "Delete"))
    await page.wait_for_function(drawn)
    await expect(page.get_by_role("img", name="Delete")).to_be_visible()
    assert await page.evaluate("getComputedStyle(document.querySelector('svg.icon')).stroke") != "none"


async def test_htmx_replaces_fragments_but_runs_no_code(open_page: OpenPage, complaints: list[str]) -> None:
    page = await open_page()
    await load(page, "htmx")
    await show(
        page,
        '<button hx-get="/app/sign-up" hx-select="h1" hx-target="#at">Replace</button><p id="at"></p>'
        '<button id="code" hx-on:click="document.title = \'ran\'" hx-get="/app/sign-up" hx-vals="js:{a: 1}"'
        ' hx-select="h1" hx-target="#code">Code</button>'
        '<div hx-disable><button id="user" hx-get="/app/sign-up" hx-target="#user">User</button></div>',
    )
    await page.evaluate("htmx.process(document.querySelector('main'))")
    assert await page.evaluate("document.head.querySelectorAll('style').length") == 0
    await page.get_by_role("button", name="User").click()
    await page.get_by_role("button", name="Code").click()
    await page.get_by_role("button", name="Replace").click()
    await expect(page.locator("#at h1")).to_be_visible()
    assert await page.title() != "ran"
    await expect(page.locator("#user")).to_have_text("User")
    assert complaints == ["console: htmx:evalDisallowedError"] * 2, "on:click and vals"
    complaints.clear()


async def test_lists_are_sorted_and_suggestions_are_navigated(open_page: OpenPage) -> None:
    page = await open_page()
    await load(page, "sortable", "combobox")
    await show(
        page,
        '<ol id="list"><li>One</li><li>Two</li><li>Three</li></ol>'
        '<label for="in">Exercise</label><input id="in"><ul id="names" role="listbox">'
        '<li id="a" role="option">Squat</li><li id="b" role="option">Row</li></ul>',
    )
    await page.evaluate("Sortable.create(document.querySelector('#list'), { forceFallback: true })")
    await page.get_by_text("One").hover()
    await page.mouse.down()
    await page.get_by_text("Two").hover()  # starts the drag
    await expect(page.locator(".sortable-fallback")).to_be_visible()
    await page.get_by_text("Three").hover(position={"x": 40, "y": 20})
    await expect(page.locator("#list > :not(.sortable-fallback)")).to_have_text(["Two", "Three", "One"])
    await page.mouse.up()
    await expect(page.locator("#list > *")).to_have_text(["Two", "Three", "One"])

    await page.evaluate("""() => {
      new Combobox(document.querySelector("#in"), document.querySelector("#names")).start();
      document.querySelector("#names").addEventListener("combobox-commit", event => {
        document.querySelector("#in").value = event.target.textContent;
      });
    }""")
    await page.get_by_label("Exercise").press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Exercise")).to_have_value("Row")


async def test_static_files_are_fetched_once(open_page: OpenPage) -> None:
    page = await open_page()
    fetched: list[str] = []
    page.on("response", lambda answer: fetched.append(answer.url) if static_files.PREFIX in answer.url else None)
    await load(page, "htmx", "charts")
    assert len(fetched) >= 5
    sizes = "performance.getEntriesByType('resource').map(each => each.transferSize)"
    await load(page, "htmx", "charts")
    assert set(await page.evaluate(sizes)) == {0}, "the second page loads them from the browser's cache"
