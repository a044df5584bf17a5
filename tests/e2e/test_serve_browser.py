"""The page in a real browser: what a reader sees and presses, by mouse, by keys, on a phone, in the dark."""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import pytest
from serving import N_BITS, make_digits, make_pictures, make_texts, serving

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
_ABSENT = not Path(CHROMIUM).exists() and not os.environ.get("HBMP_REQUIRE_BROWSER")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(_ABSENT, reason="no Chromium here")]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    make_digits(folder)
    words = ["--thumbnails", folder / "thumbnails.npy", "--features", folder / "features.npy", "--token", "open"]
    with serving(folder / "model", "--index", folder / "db", *words) as address:
        yield address


@pytest.fixture
def opened(browser):
    """Open an address, past its token; whatever is asked of others, or goes wrong on the page, fails the test."""
    contexts, strangers, wrongs = [], [], []

    def _open(address, token="open", **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("request", lambda asked: strangers.append(asked.url) if not _own(asked.url, address) else None)
        page.on("pageerror", lambda error: wrongs.append(str(error)))
        page.goto(address)
        if token:
            page.fill("#token", token)
            page.press("#token", "Enter")
        page.wait_for_selector("#results li img[src^='blob:'], #results.texts li")
        return page

    yield _open
    for context in contexts:
        context.close()
    assert strangers == []
    assert wrongs == []


def _own(asked, address):
    return asked.startswith((address + "/", "blob:" + address, "data:"))


def answered(page, act):
    """What /search answers to an act; asked once more where the browser has dropped the body, as it sometimes does."""
    from playwright.sync_api import Error

    with page.expect_response(lambda response: response.url.endswith("/search") and response.ok) as waiting:
        act()
    try:
        return waiting.value.json()
    except Error:
        return page.request.fetch(waiting.value.request).json()


def slide(page, n_bits):
    page.evaluate(
        "n => { const s = document.getElementById('n-bits'); s.value = n; s.dispatchEvent(new Event('input')) }", n_bits
    )


def test_an_item_its_bits_and_neighbours_follow_every_control(url, opened):
    page = opened(url)
    page.fill("#item-id", "5")
    answer = answered(page, lambda: page.press("#item-id", "Enter"))
    page.wait_for_function("() => document.querySelector('#query-picture figcaption').textContent === '5'")
    assert page.locator("#results li").count() == 24
    assert page.locator("#bits .bit").count() == N_BITS
    assert page.locator("#bits .plus").count() == answer["code"].count(1)
    right = sum(found["relevant"] for found in answer["results"])
    assert page.locator("#results .found.right").count() == right
    assert page.locator("#results .found.wrong").count() == 24 - right
    fewer = answered(page, lambda: slide(page, 2))
    assert fewer["n_bits"] == 2
    page.wait_for_function(f"() => document.querySelectorAll('#bits .unused').length === {N_BITS - 2}")
    for mode in ("plain", "real", "weighted"):
        assert (
            answered(page, lambda mode=mode: page.locator(f"#modes input[value={mode}]").locator("..").click())["mode"]
            == mode
        )
    page.wait_for_function("() => document.getElementById('status').textContent.includes('searched in')")
    assert "tie at distance 0" in page.inner_text("#status")  # the digits of a class have one code
    assert [int(rank) for rank in page.locator("#results .rank").all_inner_texts()] == list(range(1, 25))
    first = page.locator("#results button").first
    number = int(first.get_attribute("data-id"))
    assert answered(page, first.click)["results"]
    assert page.input_value("#item-id") == str(number)
    page.click(".filter[data-column=label] summary")
    filtered = answered(page, lambda: page.locator(".filter label:has(.value:text-is('7')) input").check())
    assert {found["label"] for found in filtered["results"]} == {"7"}
    assert page.inner_text(".filter summary") == "label: 7"
    assert {found["label"] for found in answered(page, lambda: page.click(".clear"))["results"]} != {"7"}


def test_a_vector_is_pasted_and_a_wrong_one_explained(url, opened):
    page = opened(url)
    page.locator("#sources input[value=vector]").locator("..").click()
    page.fill("#vector", "[" + ", ".join(["3"] * 64) + "]")
    assert len(answered(page, lambda: page.click("#by-vector button"))["results"]) == 24
    page.fill("#vector", "1 2 three")
    page.click("#by-vector button")
    assert "“three” is not a finite number" in page.inner_text("#status")
    page.fill("#vector", "1 2 3")
    page.click("#by-vector button")
    page.wait_for_function("() => document.getElementById('status').textContent.includes('must have 64 numbers')")


def test_keys_alone_suffice(url, opened):
    page = opened(url)
    before = page.input_value("#item-id")
    page.focus("#tab-search")
    drawn = set()
    for _ in range(4):
        answered(page, lambda: page.keyboard.press("r"))
        drawn.add(page.input_value("#item-id"))
    assert drawn - {before}
    page.focus("#n-bits")
    assert answered(page, lambda: page.keyboard.press("ArrowLeft"))["n_bits"] == N_BITS - 1
    page.keyboard.press("2")
    page.wait_for_selector("#codes:not([hidden])")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#search:not([hidden])")


def test_the_codes_are_drawn_and_a_point_of_the_map_searches(url, opened):
    page = opened(url)
    page.click("#tab-codes")
    page.wait_for_selector("#card-map circle", timeout=120_000)
    assert page.locator("#codes canvas").count() == 3
    for axis in ("rows", "columns"):
        assert page.locator(f"#card-distances .axis.{axis} span").all_inner_texts() == [str(n) for n in range(10)]
    assert page.inner_text("#card-distances .axis b") == "classes"
    assert page.inner_text("#codes-note") == ""
    assert "share a label with the query" in page.inner_text("#first-results")
    assert page.locator("#card-residuals polyline").count() == 1
    assert page.locator("#card-book .entry").count() == 11
    assert page.locator("#card-map .map circle").count() == 1797
    assert page.locator("#card-map .legend li").count() == 10
    dot = page.locator("#card-map .map circle").last
    dot.hover(force=True)
    page.wait_for_selector("#tip img[src^='blob:']")
    number = page.evaluate("() => document.querySelector('#tip img').dataset.id")
    answered(page, lambda: page.mouse.down() or page.mouse.up())
    assert page.input_value("#item-id") == number


CUT = """() => [...document.querySelectorAll('.title, .axis span, .entry .name, .chip')]
    .filter((part) => part.scrollWidth > part.clientWidth + 1 && part.clientWidth).map((part) => part.textContent)"""


def test_texts_are_found_by_words_and_shown_with_what_they_carry(tmp_path, opened):
    rows = make_texts(tmp_path, model_of=["animals", "money"])[1]
    with serving("--index", tmp_path / "db") as address:
        page = opened(address, token=None, viewport={"width": 1400, "height": 900})
        page.fill("#text", "riding a horse")
        answer = answered(page, lambda: page.press("#text", "Enter"))
        assert answer["metric"] == "cosine"
        page.wait_for_function("() => document.querySelector('#results .title').textContent === 'All about the horse'")
        card = page.locator("#results li").first
        assert card.locator(".text").inner_text().startswith("What everybody should know about a horse")
        assert "2004" in card.locator(".facts").inner_text()
        link = card.locator("a")
        assert (link.get_attribute("href"), link.get_attribute("rel")) == (
            rows[4]["url"],
            "noopener noreferrer nofollow",
        )
        shown = [float(text) for text in page.locator("#results .distance").all_inner_texts()]
        assert shown == sorted(shown)
        assert page.locator("#results img").count() == 0
        page.click(".filter[data-column=topic] summary")
        kitchen = page.locator(".filter[data-column=topic] li", has_text="kitchen").locator("input")
        assert {found["payload"]["topic"] for found in answered(page, kitchen.check)["results"]} == {"kitchen"}
        page.keyboard.press("Escape")
        assert answered(page, page.locator("#results button").first.click)["results"]
        assert page.input_value("#item-id").startswith("kitchen/")
        assert page.inner_text("#query-words strong").startswith("All about the ")
        page.click("#tab-codes")
        page.wait_for_selector("#card-map circle", timeout=120_000)
        assert "1 classes of the database are not in the code book: kitchen" in page.inner_text("#codes-note")
        assert page.evaluate(CUT) == []
        page.locator("#card-map circle").first.hover(force=True)
        assert page.inner_text("#tip span").startswith("All about the ")
        page = opened(address, token=None, viewport={"width": 390, "height": 844})
        assert page.evaluate(CUT) == []
        assert page.evaluate(TOO_WIDE) == []


@pytest.mark.slow
def test_a_link_of_a_payload_is_a_web_address_or_nothing(tmp_path, opened):
    links = ["javascript:alert(1)", "https://example.org/a", "no address", "http://example.org/<b>"] * 6
    titles = ["<img src=x onerror=alert(1)>"] * 24
    make_texts(tmp_path, payload={"title": titles, "url": links}, vectors=None, labels=None)
    with serving("--index", tmp_path / "db", "--no-map") as address:
        page = opened(address, token=None)
        page.wait_for_function("() => document.querySelectorAll('#results li').length === 23")
        hrefs = page.evaluate("() => [...document.querySelectorAll('#results a')].map((link) => link.href)")
        assert set(hrefs) == {"https://example.org/a", "http://example.org/%3Cb%3E"}
        assert page.locator("#results .title").first.inner_text() == titles[0]


TOO_WIDE = """() => [...document.querySelectorAll('body *')]
    .filter((part) => part.getBoundingClientRect().right > innerWidth + 1 && !part.closest('.book'))
    .map((part) => `${part.tagName}#${part.id}.${part.className} ${part.getBoundingClientRect().right}`).slice(0, 5)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_without_scrolling_sideways(url, opened, scheme):
    page = opened(url, viewport={"width": 360, "height": 740}, color_scheme=scheme, has_touch=True)
    for tab in ("#tab-search", "#tab-codes"):
        page.tap(tab)
        if tab == "#tab-codes":
            page.wait_for_selector("#card-map .map circle", timeout=120_000)
        assert page.evaluate(TOO_WIDE) == []
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    paper = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(246, 247, 246)", "dark": "rgb(20, 25, 26)"}[scheme]


DROP = """async ([name, content]) => {
    const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
    const files = new DataTransfer();
    files.items.add(new File([bytes], name, { type: 'image/png' }));
    document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: files, bubbles: true, cancelable: true }));
}"""


def test_an_image_is_chosen_or_dropped_and_finds_its_like(tmp_path, opened):
    """The database remembers its images, so that the page shows them without being told where they are."""
    images, _ = make_pictures(tmp_path)
    with serving("--index", tmp_path / "db", "--no-map") as address:
        page = opened(address, token=None)
        page.locator("#sources input[value=image]").locator("..").click()
        path = tmp_path / "pictures" / images.names[30]
        answer = answered(page, lambda: page.set_input_files("#image", path))
        assert 30 in [found["id"] for found in answer["results"]]
        assert page.inner_text("#query-picture figcaption") == path.name
        other = tmp_path / "pictures" / images.names[2]
        content = base64.b64encode(other.read_bytes()).decode()
        page.locator("#sources input[value=item]").locator("..").click()
        answer = answered(page, lambda: page.evaluate(DROP, ["my picture.png", content]))
        assert [found["label"] for found in answer["results"][:6]] == ["blue"] * 6
        assert page.inner_text("#query-picture figcaption") == "my picture.png"
        assert page.is_checked("#sources input[value=image]")
        first = page.locator("#results button").first
        assert first.get_attribute("title") == answer["results"][0]["name"]
        page.wait_for_function("() => document.querySelector('#results img').naturalWidth === 112")
        # A file that has gone leaves its place empty and says why; it must not show what was there before.
        gone = next(found for found in answer["results"] if found["name"] != images.names[2])
        (tmp_path / "pictures" / gone["name"]).unlink()
        page = opened(address, token=None)  # another reader, whose browser has kept nothing
        answered(page, lambda: page.evaluate(DROP, ["my picture.png", content]))
        lost = page.locator(f"#results button[data-id='{gone['id']}'] img")
        page.wait_for_function(
            "id => document.querySelector(`#results button[data-id='${id}'] img`).title.includes('is missing')",
            arg=gone["id"],
        )
        assert lost.get_attribute("src") is None
