"""The everyday question: what a plan says follows from the rows of a sweep, and its numbers add up."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from pipeline import plan, plan_input
from pipeline.config import compose_study
from pipeline.errors import UserError
from pipeline.grid import build_grid
from pipeline.plan_arguments import deepspeed_config, megatron_arguments, remarks, torchtitan_arguments
from pipeline.plan_text import layout_text
from pipeline.simulate import run_unit

CONFIG = Path(__file__).parents[1] / "data" / "huggingface" / "llama_3_1_8b.json"
SMALL = ["model=llama3_8b", "hardware=h100_sxm5", "accelerators=[8,16]", "tokens=1e12"]
ROUNDING = 1e-9  # sums of parts of a step in another order


@pytest.fixture(scope="module")
def planned():
    overrides, wanted, config = plan_input.read_arguments([*SMALL, "layout.tensor_ranks=4"])
    return plan.make_plans(plan_input.compose_plan(overrides, config, None), wanted)


def test_the_best_layout_is_that_of_a_sweep(planned):
    grid = build_grid(compose_study(["study=plan", "axes.accelerator_count=[8,16]", "run.dataset_token=1e12"]))
    swept = run_unit(grid, range(2))
    for row, each in enumerate(planned["plans"]):
        assert each["best"]["run_time_s"] == pytest.approx(swept["run_time_s"][row], rel=ROUNDING)
        assert each["best"]["layout"]["tensor_ranks"] == swept["tensor_ranks"][row]
        assert each["best"]["cost"]["total_usd"] == pytest.approx(swept["total_usd"][row], rel=ROUNDING)


def test_degrees_multiply_memory_fits_and_parts_add_up(planned):
    for each in planned["plans"]:
        layout = each["best"]["layout"]
        ranks = [layout[f"{name}_ranks"] for name in ("tensor", "context", "pipeline", "data")]
        assert np.prod(ranks) == each["accelerator_count"]
        assert each["best"]["memory_byte"] <= each["best"]["hbm_byte"]
        assert sum(each["best"]["part_time_s"].values()) == pytest.approx(each["best"]["step_time_s"], rel=1e-6)
        assert each["best"]["token_per_s"] * each["best"]["run_time_s"] == pytest.approx(1e12, rel=ROUNDING)


def test_next_best_and_hand_given_are_no_faster_and_are_what_they_say(planned):
    for each in planned["plans"]:
        best, other, given = each["best"]["layout"], each["next_best"], each["given"]
        assert other["time_ratio"] >= 1 and any(other["layout"][name] != best[name] for name in plan_input.DEGREES)
        assert given["layout"]["tensor_ranks"] == 4 and given["time_ratio"] >= 1
        assert best["tensor_ranks"] != 4 and given["time_ratio"] > 1  # else the test would say nothing


def test_a_hand_given_layout_that_cannot_be_says_what_can():
    overrides, wanted, _ = plan_input.read_arguments([*SMALL, "layout.tensor_ranks=3"])
    given = plan.make_plans(plan_input.compose_plan(overrides, None, None), wanted)["plans"][0]["given"]
    assert given == {"is_possible": False, "reason": "tensor_ranks = 3: none such divides; choose one of 1, 2, 4, 8"}


def test_what_does_not_fit_names_the_least_memory_and_the_smallest_cluster_that_holds_it():
    asked = ["model=llama3_70b", "hardware=h100_sxm5", "tokens=1e12"]
    overrides, _, _ = plan_input.read_arguments([*asked, "accelerators=4"])
    result = plan.make_plans(plan_input.compose_plan(overrides, None, None), {})
    (found,) = result["plans"]
    assert not found["fits"] and found["least_memory_byte"] > found["hbm_byte"]
    nearest = found["nearest"]
    assert nearest["fits"] and nearest["accelerator_count"] in (8, 16, 32, 64)
    again, _, _ = plan_input.read_arguments([*asked, f"accelerators={nearest['accelerator_count'] // 2}"])
    (half,) = plan.make_plans(plan_input.compose_plan(again, None, None), {})["plans"]
    assert not half["fits"]


def test_a_model_from_its_config_is_the_catalogues(planned, capsys):
    arguments = [f"model={CONFIG}", *SMALL[1:], "batch=4.0e+06", "--json"]
    assert plan.main(arguments) == 0
    own = json.loads(capsys.readouterr().out)
    assert own["parameter_count"] == pytest.approx(planned["parameter_count"], rel=1e-3)
    assert own["sequence_token"] == 8192
    times = [each["plans"][0]["best"]["run_time_s"] for each in (own, planned)]
    assert times[0] == pytest.approx(times[1], rel=0.01)  # the batch is rounded to whole sequences


def test_the_screen_is_one_screen_and_holds_the_numbers(capsys, planned):
    assert plan.main(SMALL) == 0
    text = capsys.readouterr().out
    assert len(text.splitlines()) <= 40
    for each in planned["plans"]:
        assert f"{each['accelerator_count']} x h100_sxm5" in text
        assert f"MFU {each['best']['model_flop_utilisation_fraction']:.1%}" in text
    for word in ("best", "next best", "limit", "Megatron-LM", "torchtitan", "DeepSpeed", "purchase", "rent"):
        assert word in text


LAYOUT = {
    "tensor_ranks": 4,
    "context_ranks": 2,
    "context_all_to_all_ranks": 1,
    "pipeline_ranks": 8,
    "expert_ranks": 16,
    "data_ranks": 32,
    "microbatch_sequence": 2,
    "microbatch_count": 16,
    "interleave_count": 2,
    "is_zero_bubble": 0,
    "sharding_stage": 1,
    "recompute_layer_fraction": 0.5,
}
RUN = {"sequence_token": 4096, "layer_count": 64, "expert_count": 64}


def value_of(arguments, name):
    return next(each.split()[1] for each in arguments if each.split()[0] == name)


def test_arguments_say_the_layout():
    """32 data ranks x 16 microbatches x 2 sequences = 1,024; 64 layers / (8 x 2) = 4 a chunk, half recomputed = 2."""
    megatron = megatron_arguments(LAYOUT, RUN, "fp8")
    assert value_of(megatron, "--global-batch-size") == "1024"
    assert value_of(megatron, "--recompute-num-layers") == "2"
    assert value_of(megatron, "--num-virtual-stages-per-pipeline-rank") == "2"
    assert value_of(megatron, "--expert-model-parallel-size") == "16"
    assert "--fp8-format hybrid" in megatron and "--use-megatron-fsdp" not in megatron
    titan = torchtitan_arguments(LAYOUT, RUN, "bf16")
    assert value_of(titan, "--training.local_batch_size") == "32"
    assert value_of(titan, "--parallelism.pipeline_parallel_schedule") == "Interleaved1F1B"
    speed = deepspeed_config(LAYOUT, RUN, "bf16")
    per_rank = speed["train_micro_batch_size_per_gpu"] * speed["gradient_accumulation_steps"]
    assert speed["train_batch_size"] == per_rank * 32
    assert speed["tensor_parallel"] == {"autotp_size": 4}


@pytest.mark.parametrize(
    ("context", "exchanged", "kind", "text"),
    [(1, 1, None, "TP4 PP8"), (8, 1, "p2p", "CP8 "), (8, 8, "a2a", "CP8a "), (8, 2, "a2a+p2p", "CP8a2 ")],
)
def test_the_kind_of_context_parallelism_is_said(context, exchanged, kind, text):
    layout = {**LAYOUT, "context_ranks": context, "context_all_to_all_ranks": exchanged}
    megatron = " ".join(megatron_arguments(layout, RUN, "bf16"))
    assert (f"--cp-comm-type {kind} " in megatron) == (kind is not None)
    assert ("--hierarchical-context-parallel-sizes 2 4" in megatron) == (kind == "a2a+p2p")
    assert text in layout_text(layout)
    said = " ".join(remarks(layout, RUN))
    assert ("torchtitan moves keys and values" in said) == (exchanged > 1)
    assert ("it has no ring" in said) == (context > exchanged)


def test_full_sharding_is_said_in_each_program():
    layout = {**LAYOUT, "pipeline_ranks": 1, "sharding_stage": 3}
    assert "--use-megatron-fsdp" in megatron_arguments(layout, RUN, "bf16")
    assert value_of(torchtitan_arguments(layout, RUN, "bf16"), "--parallelism.fsdp_reshard_after_forward") == "always"
    assert deepspeed_config(layout, RUN, "bf16")["zero_optimization"] == {"stage": 3}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["model=llama3_8b"], "how many accelerators?"),
        ([*SMALL, "token=2e12"], "token: unknown key; did you mean tokens?"),
        ([*SMALL, "mode=llama3_8b"], "mode: unknown key; did you mean model?"),
        (["model"], "must be name=value"),
        ([*SMALL, "layout.tensor=3"], "no such part of a layout"),
        ([*SMALL, "layout.tensor_ranks=many"], "must be a number"),
        (["model=nowhere.json", "accelerators=8"], "cannot be read as JSON"),
        ([*SMALL, "physics=[epoch2024,calibrated]"], "a plan is made with one physics"),
        ([*SMALL, "physics=epoch2024"], "needs the calibrated kind"),
        ([*SMALL, "model=dense"], "is a family"),
        ([*SMALL, "model=[llama3_8b,llama3_70b]"], "plan one model at a time"),
    ],
)
def test_mistakes_are_one_line(arguments, said):
    with pytest.raises(UserError, match=re.escape(said)) as caught:
        plan.main(arguments)
    assert "\n" not in str(caught.value)


def test_rows_of_layouts_that_do_not_fit_say_so():
    grid = build_grid(compose_study(["study=plan", "keep=all", "run.accelerator_count=8"]))
    rows = run_unit(grid, range(1))
    too_large = rows["memory_byte"] > rows["hbm_byte"]
    assert 0 < too_large.sum() < len(too_large)
    assert (rows["is_feasible"] == ~too_large).all()
    assert set(rows["infeasible_reason"][too_large]) == {"memory"}
