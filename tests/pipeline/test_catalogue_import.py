"""Importing Hugging Face configs: parameter counts against the published ones, and refusals that name the field."""

import json
from pathlib import Path

import pytest

from pipeline.catalogue import load_model
from pipeline.catalogue_import import entry_text, import_config, imported_model, read_config
from pipeline.catalogue_parameters import parameter_counts
from pipeline.errors import UserError

CONFIGS = Path(__file__).parents[1] / "data" / "huggingface"
SMALL_PARTS = 2e-3  # biases of single projections, norms inside attention, second norms: not counted
ACTIVE_ROUNDED = 0.06  # stated to two digits
# Weights as stored in the published checkpoints (of DeepSeek-V3 without its prediction module).
PUBLISHED = {
    "llama_3_1_8b": 8030261248,
    "llama_3_2_1b": 1235814400,
    "mistral_7b": 7241732096,
    "mixtral_8x7b": 46702792704,
    "qwen2_7b": 7615616512,
    "qwen3_8b": 8190735360,
    "qwen3_30b_a3b": 30532122624,
    "qwen1_5_moe_a2_7b": 14315784192,
    "gemma_7b": 8537680896,
    "gemma_2_9b": 9241705984,
    "deepseek_v2_lite": 15706484224,
    "deepseek_v3": 671026419200,
    "gpt2": 124439808,
    "gpt_neox_20b": 20554567680,
}
PUBLISHED_ACTIVE = {"mixtral_8x7b": 12.9e9, "qwen3_30b_a3b": 3.3e9, "deepseek_v2_lite": 2.66e9, "deepseek_v3": 37e9}


def config(name: str, **changes: object) -> dict:
    """Return a fixture with changes."""
    return {**read_config(CONFIGS / f"{name}.json"), **changes}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameter_counts_agree_with_the_checkpoints(name: str) -> None:
    total, active = parameter_counts(imported_model(import_config(config(name), f"{name}.json"), name, name))
    assert total == pytest.approx(PUBLISHED[name], rel=SMALL_PARTS)
    if name in PUBLISHED_ACTIVE:
        assert active == pytest.approx(PUBLISHED_ACTIVE[name], rel=ACTIVE_ROUNDED)


def test_every_fixture_has_a_published_count() -> None:
    assert {path.stem for path in CONFIGS.glob("*.json")} == set(PUBLISHED)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("llama_3_1_8b", {"model_type": "mamba"}, "model_type = 'mamba': not a family"),
        ("llama_3_1_8b", {"model_type": "llava", "text_config": {}}, "give the text_config alone"),
        ("llama_3_1_8b", {"hidden_size": None}, "hidden_size = None: must be a number"),
        ("llama_3_1_8b", {"hidden_size": "4096"}, "hidden_size = '4096': must be a number"),
        ("llama_3_1_8b", {"hidden_act": "relu"}, "hidden_act = 'relu': only silu"),
        ("llama_3_1_8b", {"loop_count": 3}, "loop_count = 3: unknown to the llama family.*--ignore loop_count"),
        ("llama_3_1_8b", {"tie_word_embeddings": 1}, "tie_word_embeddings = 1: must be true or false"),
        ("deepseek_v3", {"moe_layer_freq": 2}, "moe_layer_freq = 2: only 1 can be read"),
        ("qwen3_30b_a3b", {"decoder_sparse_step": 2}, "decoder_sparse_step = 2: only 1 can be read"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(name: str, change: dict, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        import_config(config(name, **change), "config.json")
    assert str(caught.value).startswith("config.json: ") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "more"),
    [  # as published configs and newer libraries write them, beside what the fixtures hold
        ("qwen2_7b", {"use_mrope": False, "max_window_layers": 28, "sliding_window": 131072}),
        (
            "gemma_2_9b",
            {"hidden_act": "gelu_pytorch_tanh", "sliding_window_size": 4096, "cache_implementation": "hybrid"},
        ),
        (
            "deepseek_v2_lite",
            {"head_dim": 64, "rope_parameters": {"rope_type": "yarn", "factor": 40}, "dtype": "bfloat16"},
        ),
        ("deepseek_v3", {"qk_head_dim": 192, "rope_interleave": True, "norm_topk_prob": True, "ep_size": 1}),
    ],
)
def test_fields_that_leave_the_shape_alone_change_nothing(name: str, more: dict) -> None:
    assert import_config(config(name, **more), "config.json") == import_config(config(name), "config.json")


def test_a_field_may_be_ignored_by_name() -> None:
    entry = import_config(config("llama_3_1_8b", loop_count=3), "config.json", ["loop_count"])
    assert entry["d_model"] == 4096.0


def test_the_written_entry_loads_again(tmp_path: Path) -> None:
    from pipeline.catalogue import read_yaml

    entry = import_config(config("deepseek_v3"), "config.json")
    path = tmp_path / "mine.yaml"
    path.write_text(entry_text(entry, "mine", "Mine", "config.json"))
    assert path.read_text().startswith("# @package model.mine\n")
    again = load_model(read_yaml(path), "model/mine.yaml")
    assert parameter_counts(again)[0] == pytest.approx(PUBLISHED["deepseek_v3"], rel=SMALL_PARTS)


def test_a_file_that_is_no_config_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(json.dumps([1]))
    (tmp_path / "text.json").write_text("{")
    for name, words in (
        ("list", "must be a JSON object"),
        ("text", "cannot be read as JSON"),
        ("none", "cannot be read"),
    ):
        with pytest.raises(UserError, match=words):
            read_config(tmp_path / f"{name}.json")
