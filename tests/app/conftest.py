"""A served app and headless Chromium that drives it; tests that need the browser are skipped where there is none."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,900",
)
PATIENCE_S = 90.0


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results root with one Parquet file, and a secret beside it that nothing may reach."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    base = tmp_path_factory.mktemp("app")
    root = base / "outputs"
    root.mkdir()
    rows = {"hardware": ["a", "a", "b"], "training_flop": [1e24, 1e25, 1e24], "total_usd": [1.0, 2.0, 3.0]}
    pq.write_table(pa.table(rows), root / "points.parquet")
    pq.write_table(pa.table({"secret": [1]}), base / "secret.parquet")
    return root


@pytest.fixture(scope="session")
def address(results: Path) -> Iterator[str]:
    """Serve the app in a process of its own and give its address."""
    command = [sys.executable, "-m", "pipeline.cli", "app", "--port", "0", "--results", str(results)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://\S+", line)
    assert found, line
    yield found[0]
    process.terminate()
    process.wait(20)


class Page:
    """A page in the browser, with the few things that tests do to it."""

    def __init__(self, driver: Any, address: str, screenshots: Path) -> None:
        """Keep the browser."""
        self.driver, self.address, self.screenshots = driver, address, screenshots

    def open(self, query: str = "") -> None:
        """Open the page and wait for its first answer."""
        self.driver.get("about:blank")
        self.driver.get(self.address + query)
        self.until(lambda: self.answered() > 0, "the first answer")
        self.settle()

    def answered(self) -> int:
        """Return the revision of the newest answer."""
        return int(self.run("return document.documentElement.dataset.answered || 0"))

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript."""
        return self.driver.execute_script(script, *arguments)

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait until a condition holds and return its value."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError(f"waited {PATIENCE_S:g} s for {what}")

    def settle(self) -> None:
        """Wait until nothing is being asked or drawn."""
        quiet = "return [...document.querySelectorAll('[data-dash-is-loading=true]')].length === 0"
        time.sleep(0.8)
        self.until(lambda: self.run(quiet), "a quiet page")

    def one(self, selector: str) -> Any:
        """Return an element."""
        return self.until(lambda: self.driver.find_elements("css selector", selector), selector)[0]

    def all(self, selector: str) -> list[Any]:
        """Return all elements."""
        return self.driver.find_elements("css selector", selector)

    def click(self, selector: str) -> None:
        """Click an element wherever it stands on the page."""
        self.run("arguments[0].scrollIntoView({block: 'center'})", self.one(selector))
        self.run("arguments[0].click()", self.one(selector))

    def tab(self, name: str) -> None:
        """Choose a tab."""
        self.click(f"""button[id*='"tab"'][id*='"{name}"']""")
        self.settle()

    def type(self, card: int, name: str, text: str) -> None:
        """Write into a field of a card as a person does, and wait for the answer."""
        before = self.answered()
        selector = f"""section.card:nth-child({card}) input[name$=' {name}'][type=text]"""
        element = self.one(selector)
        self.run(
            "for (let e = arguments[0]; e; e = e.parentElement) if (e.tagName === 'DETAILS') e.open = true", element
        )
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()
        element.send_keys("\ue009" + "a" + "\ue000", "\ue003", text, "\ue004")
        self.until(lambda: self.answered() > before, f"the answer to {name} = {text}")
        self.settle()

    def put(self, card: int, name: str, script: str) -> None:
        """Set a field to what a JavaScript expression gives."""
        selector = f"section.card:nth-child({card}) input[name$=' {name}'][type=text]"
        self.run(f"flopscapeWrite(arguments[0], {script})", self.one(selector))

    def choose(self, card: int, group: str, value: str) -> None:
        """Choose a preset (through Dash, as its menu does)."""
        before = self.answered()
        script = """
          const id = JSON.parse(document.querySelectorAll('section.card')[arguments[0]].id);
          dash_clientside.set_props({configuration: id.configuration, group: arguments[1], type: 'choice'},
                                    {value: arguments[2]});"""
        self.run(script, card - 1, group, value)
        self.until(lambda: self.answered() > before, f"the answer to {group} = {value}")
        self.settle()

    def curves(self, graph: str = "utilisation") -> dict[str, list[float]]:
        """Return the drawn values up of each line by name."""
        script = """
          const drawn = document.querySelector('#' + arguments[0] + ' .js-plotly-plot');
          return drawn && drawn._fullData ? drawn._fullData.map(t => [t.name, Array.from(t.y)]) : [];"""
        return dict(self.run(script, graph))

    def errors(self) -> list[str]:
        """Return what is marked as wrong."""
        return [each.text for each in self.all(".error") if each.text]

    def shot(self, name: str) -> None:
        """Keep a screenshot, for eyes."""
        self.driver.save_screenshot(str(self.screenshots / f"{name}.png"))


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if not chromium or not chromedriver:
        pytest.skip("needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(flag)
    downloads = tmp_path_factory.mktemp("downloads")
    several = {"profile.default_content_setting_values.automatic_downloads": 1}
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads), **several})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(chromedriver))
    browser.set_script_timeout(30)
    browser.downloads = downloads  # pyright: ignore[reportAttributeAccessIssue]
    yield browser
    browser.quit()


@pytest.fixture
def page(driver: Any, address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The app's page; FLOPSCAPE_SCREENSHOTS names a folder that keeps the pictures."""
    folder = Path(os.environ.get("FLOPSCAPE_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    yield Page(driver, address, folder)
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
