"""The shapes of named models: their computed parameter counts against the published ones."""

import pytest

from pipeline.catalogue import read_entries
from pipeline.catalogue_parameters import parameter_counts
from pipeline.errors import UserError

MODELS = read_entries("model")
SHAPES = {name: model for name, model in MODELS.items() if model.kind == "shape"}
COUNT_TOLERANCE = 0.02  # published counts are rounded, and differ in what they count of embeddings and norms
ACTIVE_TOLERANCE = 0.05  # publishers disagree whether the embeddings are active
RELATIVE_POSITIONS = "its relative-position projections (one d_model x d_model matrix a layer) are not in the formula"
EXCEPTIONS = {"gopher_280b": RELATIVE_POSITIONS, "chinchilla_70b": RELATIVE_POSITIONS}
ACTIVE_EXCEPTIONS = EXCEPTIONS | {"gpt_oss_120b": "the published 5.1e9 leaves the input embedding out"}


@pytest.mark.parametrize("name", SHAPES)
def test_parameter_count_agrees_with_the_published_one(name: str) -> None:
    model = SHAPES[name]
    total, active = parameter_counts(model)
    published_active = model.published.active_parameter_count or model.published.parameter_count
    agrees = total == pytest.approx(model.published.parameter_count, rel=COUNT_TOLERANCE)
    agrees_active = active == pytest.approx(published_active, rel=ACTIVE_TOLERANCE)
    assert agrees != (name in EXCEPTIONS)
    assert agrees_active != (name in ACTIVE_EXCEPTIONS)


def test_every_kind_of_model_is_there() -> None:
    assert {"alexnet", "gpt2_xl", "gpt3_175b", "llama31_405b", "mixtral_8x7b", "deepseek_v3"} <= set(MODELS)
    assert {model.attention_kind for model in SHAPES.values()} == {"mha", "gqa", "mqa", "mla"}
    assert any((model.shared_expert_count or 0) > 0 for model in SHAPES.values())


def test_a_rumour_is_marked() -> None:
    rumours = [name for name, model in MODELS.items() if model.is_rumour]
    assert rumours == ["gpt4_rumoured"]
    assert "RUMOUR" in (MODELS["gpt4_rumoured"].notes or "")


def test_a_convolutional_network_is_no_transformer() -> None:
    assert MODELS["alexnet"].kind == "convnet"
    assert MODELS["alexnet"].published.training_flop == 4.7e17
    with pytest.raises(UserError, match="model/alexnet.yaml: d_model = None: is needed to count parameters"):
        parameter_counts(MODELS["alexnet"])


def test_named_hardware_is_in_the_catalogue() -> None:
    chips = read_entries("hardware")
    for model in MODELS.values():
        assert model.published.hardware_id is None or model.published.hardware_id in chips, model.file
