"""Files, voices and the app in a real browser, in the settings of a new installation."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page as Shown
from playwright.async_api import expect

from tests.browser.conftest import Ahead, Opening, free_port
from tests.kit.browser import MISSING, found
from tests.kit.pictures import png
from tests.kit.served import Served
from tests.kit.visit import Page, paged
from tests.platforms.ears import Ears, listening

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(found() is None, reason=MISSING),
]
#: A folder for pictures, to be looked at; without one none are taken.
PICTURES = os.environ.get("REMORA_PICTURES")
LANGUAGES = ("en", "de", "es", "fr", "ja", "zh")
#: Hands a file to the page as a program does that copies it, or a hand that drops it.
BROUGHT = """([kind, name, type, bytes]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(bytes), (one) => one.charCodeAt(0))], name, { type }));
  const more = { bubbles: true, cancelable: true };
  const event = kind === "paste" ? new ClipboardEvent("paste", { clipboardData: data, ...more }) : new DragEvent(kind, { dataTransfer: data, ...more });
  (kind === "paste" ? document.getElementById("text") : document.body).dispatchEvent(event);
}"""
#: A device that speaks, and one that shows notifications: what was said and shown stands in `played`.
DEVICE = """
window.played = { said: [], shown: [], stopped: 0, badge: null, hidden: false };
class Said { constructor(text) { this.text = text; } }
window.SpeechSynthesisUtterance = Said;
Object.defineProperty(window, "speechSynthesis", { value: Object.assign(new EventTarget(), {
  getVoices: () => [{ lang: "en" }], speak: (said) => played.said.push(said), cancel: () => { played.stopped += 1; },
}) });
window.Notification = class { static permission = "default"; static async requestPermission() { return this.permission = "granted"; }
  constructor(title, more) { played.shown.push([title, more.body, more.tag]); } };
navigator.setAppBadge = async (count) => { played.badge = count; };
navigator.clearAppBadge = async () => { played.badge = 0; };
Object.defineProperty(document, "hidden", { get: () => played.hidden });
"""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def ears() -> AsyncIterator[Ears]:
    async with listening() as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def hearing(tmp_path_factory: pytest.TempPathFactory, ears: Ears) -> AsyncIterator[Page]:
    """A new installation whose voice messages are written down."""
    folder, port = tmp_path_factory.mktemp("hearing"), free_port()
    served = Served(folder, port=port, now=Ahead(), shipped=True, transcriber=ears.section)
    async with paged(folder, port=port, served=served) as page:
        yield page


def file(name: str, kind: str, data: bytes) -> Any:
    return {"name": name, "mimeType": kind, "buffer": data}


async def brought(shown: Shown, how: str, name: str, kind: str, data: bytes) -> None:
    await shown.evaluate(BROUGHT, [how, name, kind, base64.b64encode(data).decode()])


async def test_pictures_are_pasted_dropped_taken_back_and_sent(shipped: Page, opening: Opening) -> None:
    """One sees what goes along; it stands in the conversation as a picture, also when the page is loaded again."""
    shown, _ = await opening("pastes", at=shipped)
    await shown.goto("/chat/main")
    await brought(shown, "paste", "door.png", "image/png", png())
    await brought(shown, "dragover", "roof.png", "image/png", png())
    await expect(shown.locator("#files.over")).to_have_count(1)
    await brought(shown, "drop", "roof.png", "image/png", png())
    await shown.set_input_files("input[name=file]", [file("notes.txt", "text/plain", b"the pump is in the shed")])
    chips = shown.locator("#files .chip")
    await expect(chips).to_have_count(3)
    await expect(shown.locator("#files canvas")).to_have_count(2)
    await expect(shown.locator("#files.over")).to_have_count(0)
    await shown.get_by_role("button", name="Remove roof.png").click()
    await expect(chips).to_have_count(2)
    await shown.fill("#text", "look at this")
    await shown.press("#text", "Enter")
    await expect(chips).to_have_count(0)
    await expect(shown.locator(".item.theirs:not(.growing)")).to_have_count(1)
    for _ in range(2):
        picture = shown.locator(".item.mine img")
        await expect(picture).to_have_attribute("alt", "door.png")
        assert await picture.evaluate("async one => { await one.decode(); return one.naturalWidth; }") == 40
        await expect(shown.locator(".item.mine .chip")).to_contain_text("notes.txt")
        await shown.reload()
    await shown.locator(".item a.chip").click()
    await expect(shown.locator("body")).to_have_text("the pump is in the shed")


async def test_what_is_too_much_is_refused_before_it_is_sent(shipped: Page, opening: Opening) -> None:
    shown, _ = await opening("overloads", at=shipped)
    await shown.goto("/chat/main")
    large = file("huge.png", "image/png", png() + bytes(5_100_000))
    await shown.set_input_files("input[name=file]", [large, *(file(f"{n}.txt", "text/plain", b"x") for n in range(6))])
    await expect(shown.locator("#files .chip")).to_have_count(5)
    await expect(shown.locator("#limits")).to_contain_text("Not added: huge.png (5.1 MB), 5.txt (1 kB). Up to 5 files")


async def test_a_voice_is_recorded_and_written_down(hearing: Page, ears: Ears, opening: Opening) -> None:
    shown, _ = await opening("speaks", at=hearing, permissions=["microphone"])
    await shown.goto("/chat/main")
    await expect(shown.locator("#voice")).to_be_hidden()
    await shown.get_by_role("button", name="Record a voice message").click()
    await shown.get_by_role("button", name="Stop recording").click()
    await expect(shown.locator("#files .chip")).to_contain_text("Voice message")
    await shown.click("#send")
    await expect(shown.locator(".item.theirs:not(.growing)")).to_have_count(1)
    assert ears.heard[-1].startswith(b"\x1aE\xdf\xa3")
    await shown.reload()
    await expect(shown.locator(".item.mine")).to_contain_text("I like green tea")


async def test_a_microphone_is_opened_once_and_closed(hearing: Page, opening: Opening) -> None:
    """Also if the button is pressed again while the browser asks for leave."""
    shown, _ = await opening("hesitates", at=hearing, permissions=["microphone"])
    await shown.add_init_script("""window.streams = [];
      const own = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
      const leave = new Promise((done) => { window.permit = done; });
      navigator.mediaDevices.getUserMedia = (asked) => {
        const stream = leave.then(() => own(asked));
        streams.push(stream);
        return stream;
      };""")
    await shown.goto("/chat/main")
    await shown.dblclick("#record")
    await shown.evaluate("permit()")
    await shown.get_by_role("button", name="Stop recording").click()
    await expect(shown.locator("#files .chip")).to_have_count(1)
    states = (
        "Promise.all(streams).then((all) => all.flatMap((one) => one.getTracks().map((track) => track.readyState)))"
    )
    assert await shown.evaluate(states) == ["ended"]
    await shown.evaluate("choose([])")


async def test_a_microphone_that_is_refused_is_told(hearing: Page, opening: Opening) -> None:
    shown, _ = await opening("is silent", at=hearing)
    await shown.add_init_script("navigator.mediaDevices.getUserMedia = async () => { throw new Error('refused'); };")
    await shown.goto("/chat/main")
    await shown.click("#record")
    await expect(shown.locator("#limits")).to_contain_text("The microphone can’t be used")


async def test_an_answer_is_read_aloud_in_its_language_until_one_says_stop(shipped: Page, opening: Opening) -> None:
    shown, guest = await opening("listens", at=shipped)
    await shown.add_init_script(DEVICE)
    await guest.say("Ich wohne in Bern und ich mag Tee.")
    await shown.goto("/chat/main")
    await shown.get_by_role("button", name="Read aloud").click()
    said = await shown.evaluate("played.said.map((one) => [one.lang, one.text])")
    answer = " ".join((await shown.locator(".item.theirs .words").inner_text()).split())
    assert {lang for lang, _ in said} == {"de"} and " ".join("".join(text for _, text in said).split()) == answer
    await shown.get_by_role("button", name="Stop reading").click()
    assert await shown.evaluate("played.stopped") >= 2
    await shown.get_by_role("button", name="Read aloud").click()
    await shown.evaluate("played.said.at(-1).onend()")
    await expect(shown.get_by_role("button", name="Read aloud")).to_have_count(1)


async def test_enter_that_ends_a_composition_sends_nothing(shipped: Page, opening: Opening) -> None:
    """Japanese is typed in letters and chosen with Enter."""
    shown, _ = await opening("composes", at=shipped)
    await shown.goto("/chat/main")
    await shown.focus("#text")
    keys = await shown.context.new_cdp_session(shown)
    await keys.send("Input.imeSetComposition", {"text": "にほん", "selectionStart": 3, "selectionEnd": 3})
    enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229}
    for kind in ("rawKeyDown", "keyUp"):
        await keys.send("Input.dispatchKeyEvent", {"type": kind, **enter})
    await keys.send("Input.insertText", {"text": "日本"})
    assert await shown.input_value("#text") == "日本"
    await expect(shown.locator(".item.mine")).to_have_count(0)
    await shown.press("#text", "Enter")
    await expect(shown.locator(".item.mine")).to_contain_text("日本")


async def test_what_waits_is_in_the_title_and_on_the_badge_and_told_if_asked_for(
    shipped: Page, opening: Opening
) -> None:
    shown, guest = await opening("waits", at=shipped)
    await shown.add_init_script(DEVICE)
    await guest.say("I am allergic to nuts")
    await guest.say("/forget nuts", thread="asks")
    await shown.goto("/me")
    await expect(shown).to_have_title(re.compile(r"^\(1\) "))
    assert await shown.evaluate("played.badge") == 1
    await shown.locator("#notify button").click()
    await expect(shown.locator("#may")).to_contain_text("Notifications are on")
    await shown.goto("/chat/main")
    await shown.evaluate("played.hidden = true; Notification.permission = 'granted'")
    await guest.say("Where do I live?")
    await expect(shown).to_have_title(re.compile(r"^\(2\) "))
    assert len(await shown.evaluate("played.shown")) == 1
    await shown.evaluate("played.hidden = false; document.dispatchEvent(new Event('visibilitychange'))")
    await expect(shown).to_have_title(re.compile(r"^\(1\) "))
    await shown.goto("/me")
    await shown.locator("#notify button").click()
    await expect(shown.locator("#may")).to_contain_text("Notifications are off")


async def test_the_page_can_be_installed(shipped: Page, opening: Opening) -> None:
    """Chromium itself finds nothing that is missing."""
    shown, _ = await opening("installs", at=shipped)
    await shown.goto("/chat/main")
    devtools = await shown.context.new_cdp_session(shown)
    manifest = await devtools.send("Page.getAppManifest")
    assert manifest["errors"] == [] and manifest["url"].endswith("/manifest.webmanifest")
    missing = (await devtools.send("Page.getInstallabilityErrors"))["installabilityErrors"]
    assert [each for each in missing if each["errorId"] != "in-incognito"] == []


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_small_phone_has_room(hearing: Page, opening: Opening, language: str) -> None:
    """One line of menu, a placeholder that does not wrap, and fingers hit what they aim at."""
    shown, _ = await opening(f"on a phone {language}", at=hearing, locale=language, has_touch=True, is_mobile=True,
                             viewport={"width": 360, "height": 720})  # fmt: skip
    await shown.goto("/chat/main")
    assert await shown.evaluate("document.documentElement.scrollWidth") == 360
    assert await shown.evaluate("document.querySelector('.top').offsetHeight") <= 64
    text = await shown.evaluate(
        "(({ scrollHeight, clientHeight }) => [scrollHeight, clientHeight])(document.getElementById('text'))"
    )
    assert text[0] <= text[1] + 1
    sizes = await shown.evaluate(
        "[...document.querySelectorAll('#say :is(button, .file)')].filter(one => one.offsetHeight)"
        ".map(one => [one.className, one.offsetWidth, one.offsetHeight])"
    )
    assert [each for each in sizes if each[1] < 44 or each[2] < 44] == []
    if PICTURES:
        await shown.screenshot(path=Path(PICTURES) / f"phone-{language}.png")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
async def test_files_are_accessible(hearing: Page, opening: Opening, width: int, theme: str) -> None:
    shown, guest = await opening(f"{theme} {width}", at=hearing, color_scheme=theme,
                                 viewport={"width": width, "height": 800})  # fmt: skip
    notes = file("a-rather-long-name-of-a-file-with-notes.txt", "text/plain", b"the pump is in the shed")
    door = ("door.png", png(800, 600), "image/png")
    await guest.say("this is my new door, do you like it?", files={"file": door})
    await guest.say("and notes", files={"file": (notes["name"], notes["buffer"], "text/plain")})
    await shown.add_init_script(DEVICE)
    await shown.goto("/chat/main")
    await shown.set_input_files("input[name=file]", [file("roof.png", "image/png", png(900, 300)), notes])
    await expect(shown.locator("#files canvas")).to_have_count(1)
    found = (await Axe().run(shown, options={"resultTypes": ["violations"]})).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
    assert await shown.evaluate("document.documentElement.scrollWidth") == width
    if PICTURES:
        await shown.screenshot(path=Path(PICTURES) / f"files-{width}-{theme}.png")
        await shown.goto("/me#browser")
        await shown.screenshot(path=Path(PICTURES) / f"me-{width}-{theme}.png")


async def test_without_a_script_files_are_chosen_and_shown(hearing: Page, opening: Opening) -> None:
    shown, _ = await opening("no script", at=hearing, java_script_enabled=False, viewport={"width": 360, "height": 720})
    await shown.goto("/chat/main")
    await expect(shown.locator("#limits")).to_be_visible()
    await shown.set_input_files("input[name=file]", file("door.png", "image/png", png()))
    await shown.fill("#text", "look")
    if PICTURES:
        await shown.screenshot(path=Path(PICTURES) / "no-script.png")
    await shown.click("#send")
    await expect(shown.locator(".item.mine img")).to_have_attribute("alt", "door.png")
