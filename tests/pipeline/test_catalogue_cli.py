"""`flopscape catalogue`: what a person types, and what comes back."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.catalogue import CONF_DIRECTORY
from pipeline.catalogue_cli import main
from pipeline.errors import UserError

CONFIGS = Path(__file__).parents[1] / "data" / "huggingface"


def folder_with(tmp_path: Path, group: str, name: str, text: str) -> Path:
    """Return a configuration folder with one entry."""
    (tmp_path / group).mkdir(parents=True, exist_ok=True)
    (tmp_path / group / f"{name}.yaml").write_text(text)
    return tmp_path


def test_check_passes_and_says_what_share_is_assumption(capsys: Any) -> None:
    assert main(["check"]) == 0
    text = capsys.readouterr().out
    assert "nothing unsourced, nothing implausible" in text
    assert "assumption or unverified" in text and "hardware: " in text


def test_check_finds_what_is_wrong_in_a_folder_of_ones_own(tmp_path: Path, capsys: Any) -> None:
    good = (CONF_DIRECTORY / "hardware" / "h100_sxm5.yaml").read_text()
    wrong = good.replace("scale_out_one_way_byte_per_s: 5.0e+10", "scale_out_one_way_byte_per_s: 4.0e+11")
    folder = folder_with(tmp_path, "hardware", "mine", wrong.replace("  tdp_w: {ref: epoch", "  tdp_w: {ref: my_epoch"))
    assert main(["check", "--config-dir", str(folder)]) == 1
    text = capsys.readouterr().out
    assert "hardware/mine.yaml: scale_out_one_way_byte_per_s = 4e+11" in text and "typed in bits?" in text
    assert "sources.tdp_w.ref = 'my_epoch_ml_hardware': not in sources.yaml" in text


@pytest.mark.parametrize("group", ["hardware", "topology", "model", "economics", "policy", "links"])
def test_list_shows_every_entry(group: str, capsys: Any) -> None:
    assert main(["list", group]) == 0
    text = capsys.readouterr().out
    names = {"hardware": "h100_sxm5", "topology": "gtx580_2012_b", "model": "deepseek_v3"}
    names |= {"economics": "own_time", "policy": "bis_2023_10", "links": "InfiniBand FDR 4x"}
    assert names[group] in text


def test_list_without_a_group_lists_all(capsys: Any) -> None:
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    assert all(f"{group}:" in text for group in ("hardware", "topology", "model", "economics", "policy"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gtx580", ["l2_byte_per_s", "assumption", "1.924e+11 to 5.9e+11", "6 partitions x 64 B x 772 MHz"]),
        ("h100_sxm5", ["peak_dense_bf16_flop_per_s", "FLOP/s", "989.4 TFLOP/s", "stas_ml_engineering"]),
        ("gtx580_2012_b", ["levels[1].one_way_byte_per_s", "B/s", "QDR 4.0 to FDR 6.8 GB/s"]),
        ("gpt4_rumoured", ["RUMOUR", "published.training_flop", "unverified"]),
        ("own_time", ["fleet_utilisation_fraction", "0.6 to 1"]),
        ("h20", ["purchase on 2023-11-01", "from 2025-04-09: licence", "observations: 1 purchase_chip"]),
        ("tpu_v7", ["nobody has been seen to sell or rent it out", "from 2023-10-17: restricted"]),
        ("bis_2023_10", ["3A090.a: restricted", "tpp_minimum 1600 TOPS x bit", "performance_density_minimum 5.92"]),
    ],
)
def test_show_gives_every_number_with_its_source(name: str, words: list[str], capsys: Any) -> None:
    assert main(["show", name]) == 0
    text = capsys.readouterr().out
    assert all(word in text for word in words), text


def test_costs_are_printed(capsys: Any) -> None:
    assert main(["costs"]) == 0
    assert "gpt4_rumoured" in capsys.readouterr().out
    assert main(["costs", "--csv", "--economics", "epoch_costs"]) == 0
    assert capsys.readouterr().out.startswith("model,hardware,price_day")


def test_an_imported_model_is_an_entry_like_any_other(tmp_path: Path, capsys: Any) -> None:
    assert main(["import", str(CONFIGS / "mistral_7b.json"), "--name", "Mine 7B", "--config-dir", str(tmp_path)]) == 0
    assert (tmp_path / "model" / "mine_7b.yaml").is_file()
    assert "7.24173e+09 parameters" in capsys.readouterr().err
    assert main(["show", "mine_7b", "--config-dir", str(tmp_path)]) == 0
    assert "huggingface_config" in capsys.readouterr().out
    assert main(["check", "--config-dir", str(tmp_path)]) == 0
    with pytest.raises(UserError, match="exists already"):
        main(["import", str(CONFIGS / "mistral_7b.json"), "--name", "Mine 7B", "--config-dir", str(tmp_path)])


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["show", "h100"], "catalogue: h100: no such entry; did you mean"),
        (["check", "--config-dir", "/nowhere"], "--config-dir /nowhere: no such folder"),
        (["costs", "--economics", "cheap"], "economics=cheap: no such option"),
        (["import", "/nowhere/config.json"], "cannot be read as JSON"),
    ],
)
def test_mistakes_are_one_line(argv: list[str], words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        main(argv)
    assert "\n" not in str(caught.value)


def test_a_topology_of_ones_own_is_one_file(tmp_path: Path, capsys: Any) -> None:
    text = "# @package topology.mine\nname: mine\nlevels:\n  - {from: scale_up}\n  - {from: scale_out}\nsources: {}\n"
    folder = folder_with(tmp_path, "topology", "mine", text)
    assert main(["check", "--config-dir", str(folder)]) == 0
    assert main(["list", "topology", "--config-dir", str(folder)]) == 0
    assert "mine" in capsys.readouterr().out
