"""Uses a gallery as a person would, in headless Chromium: run in an environment with Playwright.

    python browse.py PAGE CHROMIUM FOLDER

Beside PAGE are several.html, of images with several labels, and boxes.html. Writes what it saw to
FOLDER/seen.json, and the file of decisions to FOLDER/saved.json.
"""

import json
import sys
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Frame, Page, sync_playwright

PHONE, DESKTOP = (390, 844), (1200, 900)
# Each name of a file as it is shown, whether it is cut, and whether its place has its end.
MEASURE_NAMES = """() => [...document.querySelectorAll(".tile .file")].map((file) => {
    const place = file.getBoundingClientRect(), text = file.firstChild.getBoundingClientRect();
    return {
        name: file.innerText, dots: getComputedStyle(file).textOverflow,
        cut: file.scrollWidth > file.clientWidth, end: text.right <= place.right,
    };
})"""


def find_faults(page: Page | Frame) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


def read_count(page: Page) -> str:
    return page.locator(".shown").first.text_content().partition("Show")[0].strip()


def main() -> None:
    path, chromium, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    seen: dict[str, object] = {"requests": [], "errors": [], "axe": {}, "wider": {}}
    with sync_playwright() as play:
        flags = ["--no-sandbox", "--enable-unsafe-swiftshader"]
        browser = play.chromium.launch(executable_path=chromium, args=flags)
        for size in (PHONE, DESKTOP):
            for scheme in ("light", "dark"):
                context = browser.new_context(
                    viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
                )
                page = context.new_page()
                page.on("request", lambda request: seen["requests"].append(request.url[:200]))
                page.on("pageerror", lambda error: seen["errors"].append(str(error)))
                page.on("dialog", lambda dialog: seen["errors"].append(dialog.message))
                page.goto(Path(path).as_uri())
                if size == PHONE:
                    page.locator(".filters > summary").click()
                name = f"{size[0]} {scheme}"
                seen["axe"][name] = find_faults(page)
                page.locator(".findings button").first.click()
                seen["axe"][f"{name}, finding"] = find_faults(page)
                wide = "document.documentElement.scrollWidth - innerWidth"
                seen["wider"][name] = page.evaluate(wide)
        decide(page, seen)
        use(page, seen)
        keep_left(page, seen)
        correct(page, seen)
        seen["keys"] = list_keys(page)
        page.keyboard.press("v")
        tables = page.locator("dialog table").all()
        rows = [
            [row.locator("th, td").all_inner_texts() for row in each.locator("tr").all()]
            for each in tables
        ]
        seen["effect"] = rows
        seen["axe, effect"] = find_faults(page)
        page.keyboard.press("Escape")
        with page.expect_download() as download:
            page.keyboard.press("S")
        download.value.save_as(folder / "saved.json")
        # They are there again when the page is opened again.
        page.reload()
        seen["reopened"] = page.locator(".total").text_content()
        page = browser.new_page()
        page.goto(Path(path).with_name("several.html").as_uri())
        seen["several"] = page.locator(".row h2").all_inner_texts()
        look_at_boxes(page, Path(path).with_name("boxes.html"), seen)
        for name, rights in (("framed", ""), ("same origin", " allow-same-origin")):
            seen[name] = copy_in_frame(browser.new_page(), Path(path), f"allow-scripts{rights}")
        browser.close()
    (folder / "seen.json").write_text(json.dumps(seen))


def look_at_boxes(page: Page, path: Path, seen: dict[str, object]) -> None:
    """Chooses images by their objects, and enlarges one."""
    page.goto(path.as_uri())
    seen["axe"]["boxes"] = find_faults(page)
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    seen["files"] = page.evaluate(MEASURE_NAMES)
    page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
    seen["relabel"] = page.get_by_label("New label").count()
    page.locator("[aria-label^='Objects'] .bin").last.click()
    seen["most objects"] = read_count(page)
    tile = page.locator("button.tile")
    seen["drawn"] = tile.locator("rect").count()
    tile.focus()
    page.keyboard.press("e")
    seen["classes"] = page.locator("dialog text").all_text_contents()
    seen["shown"] = [tile.locator("text").first.is_visible()]
    seen["shown"].append(page.locator("dialog text").first.is_visible())
    page.keyboard.press("Escape")
    page.keyboard.press("0")
    open_finding(page, "quality")
    problems = page.get_by_role("group", name="Problems").get_by_role("button")
    seen["problems"] = problems.all_inner_texts()
    problems.last.click()
    seen["blurred"] = [read_count(page), page.evaluate("document.activeElement.textContent")]
    page.keyboard.press("a")
    page.keyboard.press("d")
    problems.last.click()
    seen["blurred, dropped"] = page.locator(".tile .fate").all_text_contents()


def copy_in_frame(page: Page, path: Path, sandbox: str) -> dict[str, object]:
    """Decides in a frame, as Kubeflow's UI shows pages in, and takes the text out of it."""
    page.goto(path.with_name("several.html").as_uri())
    add = """([text, sandbox]) => {
        const frame = Object.assign(document.createElement("iframe"), { srcdoc: text });
        frame.sandbox = sandbox;
        frame.style = "width: 600px; height: 600px";
        document.body.replaceChildren(frame, document.createElement("textarea"));
    }"""
    downloads: list[str] = []
    page.on("download", lambda download: downloads.append(download.url))
    page.evaluate(add, [path.read_text(), sandbox])
    frame = page.frames[1]
    frame.wait_for_function("performance.getEntriesByName('ready').length")
    seen: dict[str, object] = {"before": frame.locator("#unkept").all_inner_texts()}
    frame.locator(".filters > summary").click()
    open_finding(frame, "Equal pixels in more than one split")
    frame.locator("[data-action=left]").first.click()
    seen["toast"] = frame.locator("#status").text_content()
    seen["total"] = frame.locator(".total").text_content()
    seen["main"] = frame.locator("button.main").all_inner_texts()
    frame.locator("#bar button.main").click()
    seen["text"] = frame.locator("textarea").input_value()
    seen["axe"] = find_faults(frame)
    frame.get_by_role("button", name="Copy", exact=True).click()
    frame.locator("dialog [role=status]:not(:empty)").wait_for()
    seen["copied"] = frame.locator("dialog [role=status]").text_content()
    frame.evaluate("document.execCommand = () => false; navigator.clipboard.writeText = null")
    frame.get_by_role("button", name="Copy", exact=True).click()
    frame.locator("dialog [role=status]", has_text="Selected").wait_for()
    seen["selected"] = frame.evaluate("getSelection().toString()")
    frame.get_by_role("button", name="Close").click()
    seen["said"] = frame.locator("body").inner_text()
    page.locator("textarea").click()
    page.keyboard.press("Control+V")
    seen["pasted"] = page.locator("textarea").input_value()
    seen["downloads"] = downloads
    return seen


# Keys and name of each button that is seen. What is in a list, as a filter or an image, has no key:
# arrows or Tab go through it.
BUTTONS = """() => {
    const lists = ".choices, .bins, .legend, .tile, .row h2, .skip, [aria-label='Move to']";
    const all = [...document.querySelectorAll("button")].filter((each) => each.checkVisibility());
    return all.map((each) => [
        each.getAttribute("aria-keyshortcuts") ?? (each.closest(lists) ? "list" : ""),
        each.getAttribute("aria-label") ?? each.textContent.trim(),
    ]);
}"""


def list_keys(page: Page) -> dict[str, object]:
    """Goes through all findings, and lists keys: those explained, and those of buttons."""
    page.keyboard.press("0")
    buttons, opened = page.evaluate(BUTTONS), []
    titles = page.locator(".findings .name").all_inner_texts()
    for _ in titles:
        page.keyboard.press("n")
        opened.append(page.locator(".finding").get_attribute("aria-label"))
        buttons += page.evaluate(BUTTONS)
        if page.locator(".over").count():
            page.locator(".tile").first.focus()
            page.keyboard.press("l")
            buttons += page.evaluate(BUTTONS)
            page.keyboard.press("b")
    page.keyboard.press("n")
    end = page.locator("#status").text_content()
    page.keyboard.press("0")
    return {
        "explained": page.locator(".keys dt").all_text_contents(),
        "keys": sorted({key for keys, _ in buttons for key in keys.split()}),
        "without": sorted({name for keys, name in buttons if not keys}),
        "nameless": [keys for keys, name in buttons if not name],
        "opened": [opened == titles, end],
    }


def open_finding(page: Page | Frame, title: str) -> None:
    page.locator(".findings").get_by_role("button", name=title).click()


def decide(page: Page, seen: dict[str, object]) -> None:
    """Keeps the left one of each pair, corrects each label, and ignores what is odd."""
    page.get_by_role("button", name="Show all images").click()
    for title in (
        "Equal pixels in more than one split",
        "Equal pixels that are labelled differently",
        "Images that look alike in different splits",
    ):
        open_finding(page, title)
        seen.setdefault("finding", read_count(page))
        pairs = page.locator(".pair")
        if "first key" not in seen:
            page.keyboard.press("1")
            seen["first key"] = [
                page.locator("#status").text_content(),
                page.locator(".pair .gone").count(),
                pairs.first.evaluate("node => node.contains(document.activeElement)"),
            ]
        seen.setdefault("first pair", pairs.first.inner_text())
        pairs.first.locator("[data-action=left]").click()
        seen.setdefault("after keep left", page.locator(".pair .gone").all_inner_texts())
        seen.setdefault("toast", page.locator("#status").bounding_box())
        buttons = page.locator("#bar :is(button, input)").all()
        seen.setdefault("buttons", [each.bounding_box() for each in buttons if each.is_visible()])
        if title.startswith("Images"):
            page.keyboard.press("H")
            seen["all copies"] = page.locator("#status").text_content()
            continue
        for number in range(1, pairs.count()):
            pairs.nth(number).locator("[data-action=left]").focus()
            page.keyboard.press("1")
    seen["sizes"] = page.locator(".pair .size").all_inner_texts()
    page.keyboard.press("x")
    seen["mode"] = page.locator(".pairs").get_attribute("data-mode")
    open_finding(page, "Labels that are probably wrong")
    seen["advice"] = page.locator(".finding .note").text_content()
    seen["order"] = page.evaluate(
        "[...document.querySelectorAll('.finding, .map, .tiles')].map(node => node.className)"
    )
    seen["map"] = page.locator(".map").get_attribute("open")
    if page.locator(".tile").count():
        page.keyboard.press("a")
        page.keyboard.press("t")
        seen["suggestions"] = page.locator("#status").text_content()
        seen["relabelled"] = sum(
            "now" in each for each in page.locator(".tile .fate").all_inner_texts()
        )
        page.keyboard.press("u")
    for tile in page.locator("button.tile").all():
        if tile.locator(".fate").text_content() == "drop":
            continue
        tile.focus()
        page.keyboard.press("t")
        place, name = tile.get_attribute("data-place"), tile.inner_text().split()[-1]
    # The map has a legend, which filters.
    page.locator(".map > summary").click()
    page.get_by_role("button", name="Show all images").click()
    seen["legend"] = page.locator(".legend button").all_inner_texts()
    page.locator(".legend button").first.click()
    seen["legend, one"] = read_count(page)
    page.get_by_role("button", name="Show all images").click()
    open_finding(page, "Labels that are probably wrong")
    # Images like one are shown whatever the filters say, and then what was there before.
    shown = read_count(page)
    page.locator(".tile").first.focus()
    page.keyboard.press("l")
    seen["alike"] = [read_count(page), page.locator(".tile .label").all_inner_texts()]
    page.keyboard.press("b")
    seen["back"] = [shown == read_count(page), page.evaluate("document.activeElement.className")]
    # The suggestion of one is taken where the finding is not shown, too.
    page.keyboard.press("u")
    page.get_by_role("button", name="Show all images").click()
    page.get_by_label("Name of a file, or a row").fill(name)
    page.locator(f".tile[data-place='{place}']").focus()
    page.keyboard.press("t")
    open_finding(page, "Images that differ from the others in quality")
    for tile in page.locator("button.tile").all():
        if not tile.locator(".fate").text_content():
            tile.focus()
            page.keyboard.press("i")


def use(page: Page, seen: dict[str, object]) -> None:
    """Selects and filters, and undoes what it decides."""
    page.get_by_role("button", name="Show all images").click()
    page.locator("#splits ~ ul button").nth(1).click()
    seen["split"] = read_count(page)
    page.locator(".tile").nth(2).focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    seen["selected"] = page.locator(".chosen").text_content()
    page.locator("#splits ~ ul button").first.click()
    page.locator("#splits ~ ul button").nth(1).click()
    seen["selected elsewhere"] = page.locator(".chosen").text_content()
    page.keyboard.press("Escape")
    page.locator(".tile").nth(4).focus()
    page.evaluate("() => { kept = Storage.prototype.setItem; Storage.prototype.setItem = null; }")
    page.keyboard.press("d")
    seen["full"] = page.locator("#status").text_content()
    page.evaluate("() => { Storage.prototype.setItem = kept; }")
    page.keyboard.press("u")
    page.get_by_role("button", name="Show all images").click()
    page.locator(".bin.more, .bin").last.scroll_into_view_if_needed()
    bins = page.locator(".bins").first.locator(".bin")
    bins.first.click()
    seen["bin"] = read_count(page)
    page.get_by_role("button", name="Show all images").click()
    if page.locator(".frame").count():
        page.locator(".frame").scroll_into_view_if_needed()
        box = page.locator(".frame").bounding_box()
        x, y, w, h = (box[name] for name in ("x", "y", "width", "height"))
        page.mouse.move(x + 2, y + 2)
        page.mouse.down()
        for to in ((w / 2, 2), (w / 2, h - 2), (2, h - 2), (2, 3)):
            page.mouse.move(x + to[0], y + to[1], steps=3)
        page.mouse.up()
        seen["lasso"] = read_count(page)
        page.get_by_role("button", name="Show all images").click()


def keep_left(page: Page, seen: dict[str, object]) -> None:
    """Decides by one key about a chain of copies in one split, and takes it back."""
    open_finding(page, "Images that look alike in a split")
    seen["advice, one split"] = page.locator(".finding .note").text_content()
    page.keyboard.press("H")
    seen["all left"] = [
        page.locator("#status").text_content(),
        page.locator(".pair .fate").all_text_contents(),
    ]
    page.keyboard.press("u")
    page.get_by_role("button", name="Show all images").click()


def correct(page: Page, seen: dict[str, object]) -> None:
    """Looks at mistakes of the model and takes what it says, enlarges, moves and finds images."""
    mistake = page.locator("#mistakes ~ ul button").first
    seen["mistake"] = mistake.inner_text()
    mistake.click()
    seen["mistakes"] = read_count(page)
    first = page.locator(".tile").first
    seen["first mistake"] = first.inner_text()
    first.focus()
    page.keyboard.press("e")
    seen["enlarged"] = page.locator("dialog").inner_text()
    seen["wide"] = page.locator("dialog img").bounding_box()["width"]
    seen["axe, enlarged"] = find_faults(page)
    page.keyboard.press("Escape")
    seen["focused"] = page.evaluate("document.activeElement.innerText")
    page.keyboard.press("e")
    page.keyboard.press("d")
    seen["decided enlarged"] = [
        page.locator(".tile .fate").first.text_content(),
        page.locator("dialog").count(),
        page.evaluate("document.activeElement.innerText"),
    ]
    page.keyboard.press("u")
    page.keyboard.press("a")
    page.keyboard.press("t")
    seen["taken"] = page.locator(".tile .fate").all_inner_texts()
    page.keyboard.press("u")
    seen["taken back"] = page.locator(".tile .fate").all_inner_texts()
    page.keyboard.press("Escape")
    first.focus()
    page.keyboard.press("r")
    page.keyboard.type("tree")
    page.keyboard.press("Enter")
    typed = page.locator(".tile .fate").all_inner_texts()
    seen["typed"] = [*typed, page.locator(".chosen").text_content()]
    page.keyboard.press("u")
    first.focus()
    page.keyboard.press("m")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    seen["moved"] = page.locator(".tile .fate").all_inner_texts()
    mistake.click()
    page.get_by_label("Name of a file, or a row").fill("LEAKED")
    seen["named"] = read_count(page)
    page.keyboard.press("a")  # not a key of the page there
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    seen["left"] = [page.locator(".shown").count(), page.locator(".chosen").text_content()]
    page.keyboard.press("Escape")
    open_finding(page, "Groups in more than one split")
    page.locator("[data-action=left]").focus()
    page.keyboard.press("t")
    seen["moved left"] = page.locator(".pair .fate").all_inner_texts()
    page.keyboard.press("u")
    page.get_by_role("button", name="Show all images").click()


main()
