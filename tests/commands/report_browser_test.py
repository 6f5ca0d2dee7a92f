"""The page of a report in Chromium, without a window."""

import json
import os
import shutil
import subprocess

import pytest

from elmo_tasks.commands.report import write_report

pytestmark = pytest.mark.browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)


class Chromium:
    """A browser with one page, over the pipe of the DevTools protocol."""

    def __init__(self, data_folder):
        program = next(path for path in map(shutil.which, NAMES) if path)
        read_by_browser, self._requests = os.pipe()
        self._replies, written_by_browser = os.pipe()
        switches = [*SWITCHES, f"--user-data-dir={data_folder}"]
        if os.geteuid() == 0:
            switches.append("--no-sandbox")  # Chromium's sandbox is not for the superuser

        def connect():
            os.dup2(read_by_browser, 3)
            os.dup2(written_by_browser, 4)

        # The protocol has it read from file 3 and write to file 4.
        self._process = subprocess.Popen(
            [program, *switches, "about:blank"], preexec_fn=connect, pass_fds=(3, 4), stderr=subprocess.DEVNULL
        )
        os.close(read_by_browser)
        os.close(written_by_browser)
        self.events = []
        self._received = b""
        self._num_calls = 0
        self._session = {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}

    def call(self, method, **parameters):
        self._num_calls += 1
        request = {"id": self._num_calls, "method": method, "params": parameters, **self._session}
        os.write(self._requests, json.dumps(request).encode() + b"\0")
        while True:
            reply = self._receive()
            if reply.get("id") == self._num_calls:
                assert "error" not in reply, reply
                return reply["result"]
            self.events.append(reply)

    def open(self, path):
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=path.as_uri())
        while not self.named("Page.loadEventFired"):
            self.events.append(self._receive())

    def evaluate(self, expression):
        """The value of an expression of JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def named(self, *methods):
        """The events of these names so far."""
        return [event["params"] for event in self.events if event.get("method") in methods]

    def close(self):
        self._session = {}
        self.call("Browser.close")
        self._process.wait(timeout=30)
        os.close(self._requests)
        os.close(self._replies)

    def _receive(self):
        while b"\0" not in self._received:
            part = os.read(self._replies, 65536)
            assert part, "the browser has ended"
            self._received += part
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)


@pytest.fixture(scope="module")
def browser(trained_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    write_report([str(trained_run)], str(folder / "page.html"))
    browser = Chromium(folder / "data")
    browser.open(folder / "page.html")
    yield browser
    browser.close()


SHOWN = "[...document.querySelectorAll('.errors tbody tr')].filter(row => row.checkVisibility())"


def search(browser, words):
    browser.evaluate(
        f"input = document.querySelector('input'); input.value = {json.dumps(words)};"
        "input.dispatchEvent(new Event('input'))"
    )
    shown = browser.evaluate(f"{SHOWN}.map(row => row.querySelector('.text').innerText.trim())")
    return shown, browser.evaluate("document.querySelector('output').value")


def column(browser, name):
    return browser.evaluate(f"{SHOWN}.map(row => row.querySelector('{name}').innerText.trim())")


def set_size(browser, width):
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)


def set_scheme(browser, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.call("Emulation.setEmulatedMedia", media="", features=features)


@pytest.mark.parametrize("width", [390, 1400])
def test_search_hides_the_rows_without_the_words(browser, width):
    set_size(browser, width)
    everything, count = search(browser, "")
    assert len(everything) == 6
    assert count == "6 of 6 rows"
    assert search(browser, " Quiet  WONDER ") == (["a film of quiet wonder"], "1 of 6 rows")
    assert search(browser, "no such words") == ([], "0 of 6 rows")
    assert search(browser, "") == (everything, "6 of 6 rows")


def test_headers_sort_the_rows_up_and_down(browser):
    set_size(browser, 1400)
    search(browser, "")
    confidences = column(browser, ".number")
    assert confidences == sorted(confidences, key=lambda words: -float(words.split()[0]))
    for heading, name in (("confidence", ".number"), ("text", ".text"), ("row", ".place")):
        click = f"[...document.querySelectorAll('.errors th')].find(th => th.innerText.includes('{heading}'))"
        browser.evaluate(f"{click}.querySelector('button').click()")
        upwards = column(browser, name)
        assert browser.evaluate(f"{click}.ariaSort") == "ascending"
        browser.evaluate(f"{click}.querySelector('button').click()")
        assert browser.evaluate(f"{click}.ariaSort") == "descending"
        assert browser.evaluate("document.querySelectorAll('.errors [aria-sort]').length") == 1
        assert column(browser, name) == upwards[::-1]
    # Of the last one: 2 comes before 10.
    numbers = [int(place.split(":")[1]) for place in upwards]
    assert numbers == sorted(numbers)


def test_nothing_is_loaded_and_nothing_complains(browser):
    (request,) = browser.named("Network.requestWillBeSent")
    assert request["request"]["url"].startswith("file://")
    assert browser.named("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded") == []


def test_text_of_the_data_is_not_run(browser):
    assert browser.evaluate("document.title") == "run – report"  # noqa: RUF001
    browser.evaluate(
        "element = document.createElement('script'); element.textContent = 'document.title = 1';"
        "document.body.append(element)"
    )
    assert browser.evaluate("document.title") == "run – report"  # noqa: RUF001
    browser.events = [event for event in browser.events if event.get("method") != "Log.entryAdded"]


@pytest.mark.parametrize("width", [320, 390, 768, 1400])
def test_page_is_no_wider_than_the_screen(browser, width):
    set_size(browser, width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_scheme_has_light_words_on_dark_ground(browser):
    def lightness(property_name):
        colour = browser.evaluate(f"getComputedStyle(document.body).{property_name}")
        return sum(map(int, colour[len("rgb(") : -1].split(", "))) / (3 * 255)

    set_scheme(browser, "light")
    assert lightness("backgroundColor") > 0.9 > 0.2 > lightness("color")
    set_scheme(browser, "dark")
    assert lightness("backgroundColor") < 0.2 < 0.8 < lightness("color")
    set_scheme(browser, "light")


def test_every_mark_has_the_colour_of_the_scheme(browser):
    """A class without a colour would be drawn in black, which the dark ground swallows."""
    set_scheme(browser, "dark")
    strokes = "[...document.querySelectorAll('.line path')].map(path => getComputedStyle(path).stroke)"
    colours = browser.evaluate(strokes)
    assert len(colours) > 5
    assert not {"none", "rgb(0, 0, 0)"} & set(colours)
    set_scheme(browser, "light")
