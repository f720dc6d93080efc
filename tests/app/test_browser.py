"""What a person does with the page, in a real browser."""

import json
import time
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pyarrow.parquet as pq
import pytest

SLIDER_STEP = 0.05  # a slider moves in hundredths of two decades


def address_of(*configurations: dict[str, Any], tab: str = "utilisation") -> str:
    return "?" + urlencode({"c": json.dumps(configurations), "tab": tab})


def waited_file(folder: Path, name: str) -> Path:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if (folder / name).exists():
            return folder / name
        time.sleep(0.1)
    raise AssertionError(f"{name} was not downloaded")


def test_first_visit_shows_two_chips_and_a_sentence(page: Any) -> None:
    page.open()
    curves = page.curves()
    assert list(curves) == ["GTX 580 (2010)", "H100 (2022)"]
    assert all(len(values) > 20 for values in curves.values())
    assert "where a line bends down" in page.one("#introduction").text
    assert not page.errors()
    page.shot("first_visit")


def test_no_request_leaves_and_nothing_is_logged(page: Any) -> None:
    page.driver.get_log("performance")
    page.open()
    for name in ("parallelism", "largest", "cost", "bottlenecks", "run", "results"):
        page.tab(name)
        page.shot(name)
    sent = []
    for entry in page.driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            sent.append(message["params"]["request"]["url"])
    local = (page.address, "data:", "blob:", "about:", "chrome")
    assert [url for url in sent if not url.startswith(local)] == []
    assert [each["message"] for each in page.driver.get_log("browser") if each["level"] == "SEVERE"] == []
    titles = page.run("return [...document.querySelectorAll('.modebar-btn')].map(e => e.dataset.title)")
    assert titles and not any("Share" in title for title in titles)


def test_add_copy_rename_and_remove(page: Any) -> None:
    page.open()
    page.click("#add")
    page.until(lambda: len(page.curves()) == 3, "three curves")
    page.choose(3, "hardware", "a100_sxm4_80")
    a100 = page.curves()["Configuration 3"]
    assert a100 != page.curves()["H100 (2022)"]
    page.click("section.card:nth-child(3) button[id*='copy']")
    page.until(lambda: "Configuration 3 copy" in page.curves(), "the copy")
    assert page.curves()["Configuration 3 copy"] == a100
    page.shot("four_configurations")
    name = page.one("section.card:nth-child(3) input[id*='\"name\"'][name]")
    page.run("arguments[0].scrollIntoView()", name)
    name.send_keys("\ue009" + "a" + "\ue000", "A100", "\ue004")
    page.until(lambda: "A100" in page.curves(), "the new name")
    page.click("section.card:nth-child(1) button[id*='remove']")
    page.until(lambda: list(page.curves()) == ["H100 (2022)", "A100", "Configuration 3 copy"], "the rest")


def test_custom_chip_moves_its_curve_alone(page: Any) -> None:
    page.open()
    before = page.curves()
    page.type(2, "hardware.hbm_byte_per_s", "1e11")
    after = page.curves()
    assert after["H100 (2022)"] != before["H100 (2022)"]
    assert after["GTX 580 (2010)"] == before["GTX 580 (2010)"]
    assert "hbm_byte_per_s" in page.driver.current_url
    page.click("section.card:nth-child(1) button[id*='remove']")
    page.until(lambda: page.curves() == {"H100 (2022)": after["H100 (2022)"]}, "the custom chip, kept")


def test_dragging_redraws_and_the_last_position_wins(page: Any) -> None:
    page.open()
    script = """
      const slider = document.querySelectorAll(
        'section.card:nth-child(2) input[type=range][name*="scale_out_one_way"]')[0];
      const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
      let step = 0;
      const timer = setInterval(() => {
        set.call(slider, Number(slider.max) - 0.02 * step);
        slider.dispatchEvent(new Event('input', {bubbles: true}));
        if (++step > 40) clearInterval(timer);
      }, 50);"""
    before = page.answered()
    page.run(script)
    page.until(lambda: page.answered() > before + 1, "answers while dragging")
    last = 5e11 / 10 ** (0.02 * 40)
    find = "return document.querySelector('.card:nth-child(2) input[type=text][name*=scale_out_one_way]').value"
    page.until(lambda: abs(float(page.run(find) or 1) / last - 1) < SLIDER_STEP, "the last position")
    page.settle()
    page.until(lambda: page.run("return window.flopscapeIsIdle()"), "the last answer")
    page.settle()
    field = page.run(find)
    curves = page.curves()
    numbers = {"hardware.scale_out_one_way_byte_per_s": field}
    page.open(address_of({"name": "H100 (2022)", "hardware": "h100_sxm5", "numbers": numbers}))
    assert page.curves()["H100 (2022)"] == curves["H100 (2022)"]


def test_two_data_centres(page: Any) -> None:
    sites = {"sites.site_ranks": "8192", "sites.one_way_byte_per_s": "1e8", "sites.distance_m": "1e6"}
    one = {"name": "one", "physics": "calibrated"}
    page.open(address_of(one, one | {"name": "sites", "numbers": sites}))
    curves = page.curves()
    assert len(curves) == 2 and curves["one"] != curves["sites"]
    assert curves["sites"][-1] <= curves["one"][len(curves["sites"]) - 1]


def test_long_work_shows_progress_and_can_be_cancelled(page: Any) -> None:
    page.open()
    page.put(2, "sites.site_ranks", "'40000'")
    page.until(lambda: page.run("return !document.getElementById('working').hidden"), "progress")
    page.shot("progress")
    page.click("#cancel")
    page.until(lambda: any("cancelled" in each for each in page.errors()), "the word cancelled")
    assert "GTX 580 (2010)" in page.curves()


def test_clicked_point_is_explained(page: Any) -> None:
    page.open()
    at = page.run(
        """const graph = document.querySelector('#utilisation .js-plotly-plot'), full = graph._fullLayout;
        const box = graph.getBoundingClientRect(), trace = graph._fullData[1], i = 10;
        return [box.left + full.xaxis._offset + full.xaxis.l2p(Math.log10(trace.x[i])),
                box.top + full.yaxis._offset + full.yaxis.l2p(trace.y[i])];"""
    )
    from selenium.webdriver import ActionChains

    ActionChains(page.driver).move_by_offset(int(at[0]), int(at[1])).pause(0.4).click().perform()
    ActionChains(page.driver).reset_actions()
    page.until(lambda: "Inputs" in page.one("#run").text, "the explanation")
    text = page.one("#run").text
    assert "matmul time s" in text and "datasheet" in text
    page.shot("clicked_point")


def test_downloads(page: Any) -> None:
    page.open()
    folder = page.driver.downloads
    page.click("#csv")
    csv = waited_file(folder, "flopscape.csv").read_text()
    assert csv.splitlines()[0].startswith('"configuration"') or csv.startswith("configuration")
    assert len(csv.splitlines()) == 139
    page.click("#parquet")
    table = pq.read_table(waited_file(folder, "flopscape.parquet"))
    assert table.num_rows == 138
    assert table.schema.field("step_time_s").metadata[b"unit"] == b"s"
    page.click("#figure")
    assert waited_file(folder, "flopscape.svg").read_text().startswith("<svg")
    page.click("section.card:nth-child(2) button[id*='yaml']")
    assert "@package _global_" in waited_file(folder, "h100_2022.yaml").read_text()


def test_shared_address_reproduces_the_page(page: Any) -> None:
    page.open()
    page.type(2, "hardware.hbm_byte_per_s", "5e11")
    page.tab("cost")
    address, curves = page.driver.current_url, page.curves()
    page.open(address.removeprefix(page.address))
    assert page.one("button[aria-selected=true]").text == "Cost and energy"
    page.tab("utilisation")
    assert page.curves() == curves
    given = json.loads(parse_qs(urlsplit(page.driver.current_url).query)["c"][0])
    assert given[1]["numbers"] == {"hardware.hbm_byte_per_s": "5e11"}


def test_wrong_value_is_marked_at_its_field_and_the_rest_goes_on(page: Any) -> None:
    page.open()
    page.type(2, "hardware.hbm_byte", "-3")
    wrong = page.one("section.card:nth-child(2) .error[data-error$=' hardware.hbm_byte']")
    assert "must be >= 1" in wrong.text
    assert list(page.curves()) == ["GTX 580 (2010)"]
    page.shot("wrong_value")
    page.type(2, "hardware.hbm_byte", "9e10")
    page.until(lambda: len(page.curves()) == 2, "both curves")
    assert not page.errors()


def test_long_text_and_script_in_a_name_do_nothing(page: Any) -> None:
    page.open(address_of({"name": "<img src=x onerror=window.harm=1>", "numbers": {"hardware.hbm_byte": "1e400"}}))
    assert any("finite" in each for each in page.errors())
    assert any("may hold letters" in each for each in page.errors())
    assert page.run("return window.harm || 0") == 0
    page.open()
    before = page.answered()
    page.put(2, "hardware.hbm_byte", "'9'.repeat(10 * 1024 * 1024)")
    page.until(lambda: any("longer than 40" in each for each in page.errors()), "the reason")
    assert page.answered() > before
    assert len(page.driver.current_url) < 3000


def test_largest_run_follows_the_threshold(page: Any) -> None:
    page.open(address_of({"name": "H100"}, tab="largest"))
    first = page.until(lambda: page.one("#largest").text, "the table")
    page.run("dash_clientside.set_props('linear-share', {value: 0.95})")
    page.until(lambda: "95%" in page.one("#largest").text, "the new threshold")
    assert "80%" in first


def test_results_tab_asks_in_sql_and_refuses_harm(page: Any) -> None:
    page.open("?tab=results")
    page.until(lambda: "3 rows" in page.one("#results-table").text, "the file's rows")
    for sql, said in (
        ("select hardware, sum(total_usd) as usd from points group by all order by all", ""),
        ("select * from read_text('/etc/passwd')", "Permission"),
        ("copy points to '/tmp/flopscape_harm.csv'", "COPY"),
    ):
        page.run("dash_clientside.set_props('results-sql', {value: arguments[0]})", sql)
        page.click("#results-run")
        if said:
            page.until(lambda said=said: said in page.one("#results-error").text, said)
        else:
            page.until(lambda: "2 rows" in page.one("#results-table").text, "two rows")
    page.shot("sql")


BOXES = """
  const graph = document.querySelector('#' + arguments[0] + ' .js-plotly-plot');
  const box = (each) => { const b = each.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
  return ['.legend', '.modebar', '.xtitle', '.ytitle', '.annotation'].flatMap(
    (name) => Array.from(graph.querySelectorAll(name), box));"""


@pytest.mark.parametrize("width", [390, 600, 900, 1400])
def test_legend_titles_and_buttons_of_a_figure_do_not_overlap(page: Any, width: int) -> None:
    chips = ("gtx580", "h100_sxm5", "a100_sxm4_80", "b200", "v100_sxm2_32")
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page.open(address_of(*({"name": f"{chip} as it was sold", "hardware": chip} for chip in chips)))
    for tab in ("utilisation", "cost", "parallelism", "bottlenecks"):
        page.tab(tab)
        boxes = page.until(lambda tab=tab: page.run(BOXES, tab), "a drawn figure")
        assert len(boxes) >= 4
        for (left, top, right, bottom), other in combinations(boxes, 2):
            apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            assert apart, f"{tab} at {width}: {(left, top, right, bottom)} and {other}"


def test_shares_that_overlap_are_explained_where_they_are_shown(page: Any) -> None:
    page.open(address_of({"name": "H100"}, tab="bottlenecks"))
    page.until(lambda: "more than 1" in page.one("#overlap").text, "the sentence under the figure")
    page.tab("run")
    page.until(lambda: "more than 1" in page.one("#run").text, "the sentence under the table")
    page.open(address_of({"name": "H100", "physics": "calibrated"}, tab="bottlenecks"))
    assert page.one("#overlap").text == ""


def test_phone_and_dark(page: Any) -> None:
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page.open()
    assert page.run("return document.documentElement.scrollWidth") <= 390
    page.click("#scheme-button")
    page.settle()
    assert page.run("return document.documentElement.dataset.scheme") == "dark"
    page.shot("phone_dark")
    page.run("document.querySelector('#cards').scrollIntoView()")
    page.shot("phone_cards")


def test_keyboard_reaches_tabs_and_fields(page: Any) -> None:
    page.open()
    page.run("document.querySelector('[role=tab]').focus()")
    page.driver.switch_to.active_element.send_keys("\ue014")  # right arrow
    page.until(lambda: page.one("button[aria-selected=true]").text == "Parallelism", "the next tab")
    # a Dash menu takes the focus through a target of its own
    found = "[...document.querySelectorAll('button:not(.dash-dropdown), input, summary')]"
    unreachable = page.run(f"return {found}.filter(e => e.tabIndex < 0).map(e => e.outerHTML.slice(0, 150))")
    assert unreachable == []
