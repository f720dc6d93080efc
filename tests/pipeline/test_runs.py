"""Rows of runs tables as inputs: written rules, a flag for each guess, no row that breaks the reader."""

import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from models.packing import transformer_names
from pipeline.catalogue import read_entries
from pipeline.errors import UserError
from pipeline.runs import read_runs, with_least_memory
from pipeline.runs_chips import ALIASES, VARIANTS, chip_of, plain_name, published_port_byte_per_s
from pipeline.runs_stacks import STACKS
from pipeline.runs_table import FURTHER_RUNS, NEEDED, PUBLISHED_RUNS
from pipeline.validate import validate

CHIPS = read_entries("hardware")
PUBLISHED = pl.read_csv(PUBLISHED_RUNS, infer_schema=False)
FULL_ROW = {
    **{"run_id": "a", "family": "f", "gpu": "h100_sxm", "num_gpus": "64", "gpus_per_node": "8", "n_layers": "32"},
    **{"d_model": "4096", "n_heads": "32", "n_kv_heads": "8", "head_dim": "128", "d_ff": "14336"},
    **{"ffn_type": "swiglu", "vocab": "128256", "seq_len": "8192", "global_batch_sequences": "128"},
    **{"microbatch_sequences": "1", "tp": "1", "pp": "1", "dp": "64", "cp": "1", "recompute": "none"},
    **{"zero_stage_or_fsdp": "fsdp", "precision": "bf16", "framework": "NeMo 25.04", "year": "2025", "status": "ok"},
    **{"measured_step_time_s": "1.9", "sequence_parallel": "False", "network_note": "400 Gb/s per GPU"},
}


def written(tmp_path: Path, *rows: dict[str, str]) -> Path:
    path = tmp_path / "runs.csv"
    pl.DataFrame([{**FULL_ROW, **row} for row in rows]).write_csv(path)
    return path


def test_published_table_is_read_whole() -> None:
    runs = read_runs()
    assert runs.about.height + sum(runs.left_out.values()) == PUBLISHED.height == 964
    assert set(runs.columns) == set(transformer_names())
    for name, values in runs.columns.items():
        assert np.isfinite(values).all() and (values >= 0).all(), name


def test_every_input_of_a_full_row_by_hand(tmp_path: Path) -> None:
    runs = read_runs(written(tmp_path, {}))
    got = {name: float(values[0]) for name, values in runs.columns.items()}
    assert runs.about["flags"].to_list() == [[]]
    wanted = {
        **{"query_width": 4096, "key_value_width": 1024, "ffn_matrix_count": 3, "layer_count": 32, "tensor_ranks": 1},
        **{"data_ranks": 64, "microbatch_count": 2, "microbatch_sequence": 1, "sharding_stage": 3, "shard_ranks": 64},
        **{"scale_out_byte_per_s": 50e9, "domain_ranks": 8, "hbm_byte_per_s": 3.35e12, "is_eager": 0},
        **{"host_ratio": 0.5, "weight_byte": 4, "gradient_byte": 4, "optimizer_byte": 8, "operand_byte": 2},
        **{"stored_activation_fraction": 1, "recompute_matmul_fraction": 0, "interleave_ratio": 1},
    }
    assert {name: got[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("column", "flag", "field", "value"),
    [
        ("n_heads", "heads", "score_head_count", 32),
        ("n_kv_heads", "kv", "key_value_width", 4096),
        ("vocab", "vocab", "vocabulary_size", 50000),
        ("ffn_type", "ffn", "ffn_matrix_count", 3),
        ("d_ff", "d_ff", "ffn_width", 11008),  # 8/3 x 4096 to the next 256
        ("microbatch_sequences", "microbatch", "microbatch_sequence", 1),
        ("recompute", "recompute", "recompute_matmul_fraction", 0),
        ("zero_stage_or_fsdp", "zero", "sharding_stage", 1),
        ("precision", "precision", "operand_byte", 2),
        ("global_batch_sequences", "batch", "microbatch_count", 1),
        ("tp", "layout", "tensor_ranks", 1),
        ("year", "year", "host_ratio", 0.5),
    ],
)
def test_a_blank_follows_its_rule_and_leaves_a_flag(
    tmp_path: Path, column: str, flag: str, field: str, value: float
) -> None:
    for blank in ("", "NA", "?"):
        runs = read_runs(written(tmp_path, {column: blank}))
        assert flag in runs.about["flags"][0].to_list()
        assert runs.columns[field][0] == value


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"gpu": "quantum_brain_9"}, "gpu 'quantum_brain_9' is not in the catalogue"),
        ({"gpu": ""}, "gpu is not published"),
        ({"n_layers": ""}, "n_layers is not published"),
        ({"num_gpus": "many"}, "num_gpus is not a number"),
        ({"num_gpus": "8.5"}, "num_gpus is not a number"),
        ({"num_gpus": "0"}, "num_gpus is zero"),
        ({"global_batch_sequences": "", "microbatch_sequences": ""}, "neither global nor microbatch is published"),
        ({"notes": "IMPLAUSIBLE: above peak"}, "implausible by its own note"),
    ],
)
def test_rows_that_the_model_cannot_take_are_counted(tmp_path: Path, change: dict[str, str], reason: str) -> None:
    runs = read_runs(written(tmp_path, change, {"run_id": "b"}))
    assert runs.left_out == {reason: 1}
    assert runs.about["run_id"].to_list() == ["b"]


def test_a_table_of_which_nothing_can_be_taken_validates(tmp_path: Path) -> None:
    result, _ = validate(read_runs(written(tmp_path, {"gpu": "none such"})))
    assert result["groups"]["all"]["rows"] == 0
    assert result["rows"]["read"] == 1


def test_missing_columns_are_one_line_that_names_them(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    pl.DataFrame({"gpu": ["h100"], "num_gpus": [8], "measured_step_time_s": [1.0]}).write_csv(path)
    with pytest.raises(UserError, match=r"bad\.csv: missing columns: n_layers, d_model, seq_len; .*") as caught:
        read_runs(path)
    assert "\n" not in str(caught.value)
    pl.DataFrame({name: ["1"] for name in NEEDED}).write_csv(path)
    with pytest.raises(UserError, match="nothing measured"):
        read_runs(path)


def test_only_needed_columns_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "short.parquet"
    numbers = {"num_gpus": [8], "n_layers": [32], "d_model": [4096], "seq_len": [4096], "global_batch_sequences": [64]}
    pl.DataFrame({"gpu": ["H100 SXM5 80GB"], **numbers, "measured_step_time_s": [3.5]}).write_parquet(path)
    result, _ = validate(read_runs(path))
    assert result["groups"]["dense_16bit"]["rows"] == 1


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("NVIDIA H100-80GB-HBM3", "h100_sxm5"),
        ("A100-SXM4-40GB", "a100_sxm4_40"),
        ("NVIDIA A100 80GB PCIe", "a100_pcie_80"),
        ("Tesla V100-SXM2-16GB", "v100_sxm2_16"),
        ("GB200 NVL72", "gb200_nvl72"),
        ("H200", "h200_sxm"),
        ("H20", "h20"),
        ("TPU v5p", "tpu_v5p"),
        ("AMD Instinct MI300X", "mi300x"),
        ("b200_sxm", "b200"),
        ("Intel Gaudi 2 HL-225H", "gaudi2"),
        ("Huawei Ascend 910B3", "ascend910b"),
        ("TPU v5 lite", "tpu_v5e"),
        ("v5p-1024", "tpu_v5p"),
        ("Ironwood", "tpu_v7"),
    ],
)
def test_spellings_of_chips(name: str, chip: str) -> None:
    found = chip_of(name, CHIPS)
    assert found is not None and found.id == chip


@pytest.mark.parametrize("name", ["H1000", "A1000 80GB", "Quantum Annealer"])
def test_longer_numbers_are_other_chips(name: str) -> None:
    assert chip_of(name, CHIPS) is None


def test_a_table_without_rows_is_one_line(tmp_path: Path) -> None:
    path = written(tmp_path, {})
    path.write_text(path.read_text().splitlines()[0] + "\n")
    with pytest.raises(UserError, match="no rows below the header"):
        read_runs(path)


def test_aliases_name_chips_of_the_catalogue() -> None:
    assert set(ALIASES) <= set(CHIPS)
    assert all(plain_name(alias) == alias for aliases in (*ALIASES.values(), VARIANTS) for alias in aliases)
    capped = chip_of("h100_sxm_96gb_500w", CHIPS)
    assert capped is not None and capped.tdp_w == 500.0


@pytest.mark.parametrize(
    ("note", "per_node", "byte_per_s"),
    [
        ("DGX-H100 (8x NDR400 per node)", 8, None),
        ("DGX Cloud reference (8x400Gb/s per H100 node)", 8, 50e9),
        ("1600 Gbps node-node RoCE", 8, 25e9),
        ("Grand Teton, 400 Gb/s RDMA per GPU", 8, 50e9),
        ("Jean Zay A100: NVLink 4 per GPU, 4x100 Gb/s Omni-Path per node", 8, 6.25e9),
        ("NVL72 domain", 4, None),
        ("", 8, None),
    ],
)
def test_published_ports(note: str, per_node: float, byte_per_s: float | None) -> None:
    if note.startswith("DGX-H100"):
        byte_per_s = published_port_byte_per_s(note, per_node)  # either reading: unstated, or 8 x 400
        assert byte_per_s in (None, 50e9)
    else:
        assert published_port_byte_per_s(note, per_node) == byte_per_s


def test_stacks_are_data_with_reasons_and_the_last_takes_all() -> None:
    assert len({each.id for each in STACKS}) == len(STACKS)
    assert all(len(each.why) > 20 for each in STACKS)
    assert STACKS[-1].names == ("",) and STACKS[-1].last_year == float("inf")


@pytest.mark.parametrize(
    ("framework", "year", "stack"),
    [
        ("Megatron-DeepSpeed", "2022", "deepspeed_2022"),
        ("Megatron-LM", "2021", "megatron_lm_2021"),
        ("Megatron-LM", "2025", "megatron_lm"),
        ("NeMo 24.07", "2024", "vendor_recipes_24_0"),
        ("NeMo", "2025", "vendor_recipes"),
        ("Megatron-Bridge 26.06", "2026", "vendor_recipes_26_06"),
        ("torchtitan", "2024", "torchtitan"),
        ("GPT-NeoX", "2022", "deepspeed_2022"),
        ("AXLearn", "2024", "xla"),
        ("Brand New Trainer 1", "2026", "other"),
        ("", "", "other"),
    ],
)
def test_stack_of_a_run(tmp_path: Path, framework: str, year: str, stack: str) -> None:
    runs = read_runs(written(tmp_path, {"framework": framework, "year": year}))
    assert runs.about["stack"].to_list() == [stack]


def test_a_tpu_runs_what_xla_compiles(tmp_path: Path) -> None:
    runs = read_runs(written(tmp_path, {"framework": "Brand New Trainer 1", "gpu": "TPU v4"}))
    assert runs.about["stack"].to_list() == ["xla"]


PIPED = {"n_layers": "96", "tp": "8", "pp": "12", "dp": "16", "num_gpus": "1536", "global_batch_sequences": "768"}
PIPED |= {"zero_stage_or_fsdp": "zero1", "sequence_parallel": "", "vpp": ""}


@pytest.mark.parametrize(
    ("framework", "year", "gpu", "chunks", "sequence_ranks"),
    [
        ("Megatron-LM", "2024", "h100_sxm", 2.0, 8.0),  # 96 / (12 x 4)
        ("our own", "2024", "h100_sxm", 2.0, 8.0),
        ("our own", "2021", "a100_sxm_80gb", 1.0, 1.0),
        ("Megatron-LM", "2022", "a100_sxm_80gb", 1.0, 1.0),
        ("DeepSpeed", "2024", "h100_sxm", 1.0, 1.0),
        ("MaxText", "2024", "tpu_v5p", 1.0, 8.0),
    ],
)
def test_layers_are_split_as_was_usual(
    tmp_path: Path, framework: str, year: str, gpu: str, chunks: float, sequence_ranks: float
) -> None:
    """Interleaving and sequence parallelism that nobody published: since 2023 as Megatron-Core does, and flagged."""
    row = {**PIPED, "framework": framework, "year": year, "gpu": gpu}
    runs = read_runs(written(tmp_path, row, {**row, "vpp": "8", "sequence_parallel": "false"}))
    assert runs.columns["interleave_ratio"].tolist() == [chunks, 8.0]
    assert runs.columns["sequence_ranks"].tolist() == [sequence_ranks, 1.0]
    assert [[each for each in flags if each in ("vpp", "sp")] for flags in runs.about["flags"]] == [["vpp", "sp"], []]


def test_the_least_memory_a_run_may_have_had(tmp_path: Path) -> None:
    """Unpublished microbatch: one sequence, as many tokens in all; unpublished recomputation: all of it."""
    unsure = {"microbatch_sequences": "", "recompute": "", "global_batch_sequences": "512", "seq_len": "2048"}
    runs = read_runs(written(tmp_path, {}, unsure))
    least = with_least_memory(runs)
    assert runs.columns["microbatch_sequence"].tolist() == [1.0, 4.0] and runs.columns["microbatch_count"][1] == 2.0
    assert least["microbatch_sequence"].tolist() == [1.0, 1.0] and least["microbatch_count"].tolist() == [2.0, 8.0]
    assert least["recompute_matmul_fraction"].tolist() == [0.0, 1.0]
    assert least["stored_activation_fraction"].tolist() == [1.0, 0.0]


def test_the_least_state_a_run_may_have_had(tmp_path: Path) -> None:
    """Unpublished sharding: the optimiser's; unpublished interleaving: none; a compiler's layer inputs: on the host."""
    unsharded = read_runs(written(tmp_path, {"framework": "Megatron-LM", "year": "2022", "zero_stage_or_fsdp": ""}))
    assert unsharded.columns["sharding_stage"].tolist() == [0.0]
    assert with_least_memory(unsharded)["sharding_stage"].tolist() == [1.0]
    piped = {"pp": "4", "tp": "2", "dp": "8", "vpp": "", "zero_stage_or_fsdp": "zero1"}
    interleaved = read_runs(written(tmp_path, piped))
    assert interleaved.columns["interleave_ratio"].tolist() == [2.0]
    assert with_least_memory(interleaved)["interleave_ratio"].tolist() == [1.0]
    traced = read_runs(written(tmp_path, {"gpu": "tpu_v5p", "framework": "MaxText", "recompute": ""}))
    assert traced.columns["recompute_elementwise_fraction"].tolist() == [1.0]
    assert with_least_memory(traced)["recompute_elementwise_fraction"].tolist() == [0.0]


def test_ulysses_is_an_all_to_all(tmp_path: Path) -> None:
    runs = read_runs(written(tmp_path, {"cp": "4", "notes": "DeepSpeed-Ulysses"}, {"cp": "4"}))
    assert runs.columns["context_all_to_all_ranks"].tolist() == [4, 1]


@pytest.mark.parametrize("name", ["DeepSeek-V3", "deepseek_v3", "DeepSeek V3 671B"])
def test_latent_attention_comes_from_the_catalogue(tmp_path: Path, name: str) -> None:
    shape = {"n_layers": "61", "d_model": "7168", "n_heads": "128", "n_kv_heads": "128", "d_ff": "18432"}
    experts = {"n_experts": "256", "top_k": "8", "n_shared_experts": "1", "moe_d_ff": "2048", "ep": "32", "tp": "1"}
    runs = read_runs(written(tmp_path, {"model_name": name, **shape, **experts}))
    got = {name: float(values[0]) for name, values in runs.columns.items()}
    assert (got["key_value_rank_width"], got["query_rank_width"], got["rope_width"]) == (512, 1536, 64)
    assert got["moe_layer_fraction"] == pytest.approx(58 / 61)
    assert runs.about["group"].to_list() == ["moe"]


def test_damaged_rows_never_break_and_stay_finite(tmp_path: Path) -> None:
    """Published rows with cells blanked or replaced by nonsense: each is predicted or counted as left out."""
    chance, rows = random.Random(1), PUBLISHED.to_dicts()
    kept = ("run_id", "measured_step_time_s")
    nonsense = ("", "NA", "many", "-3", "0", "7", "1e3", "True", "none", "nan", "inf", "h100", "[1, 2]")
    damaged = []
    for _ in range(400):
        row = dict(chance.choice(rows))
        for name in chance.sample([each for each in row if each not in kept], chance.randint(0, 12)):
            row[name] = chance.choice(nonsense)
        damaged.append(row)
    path = tmp_path / "damaged.csv"
    pl.DataFrame(damaged, schema=dict.fromkeys(PUBLISHED.columns, pl.String)).write_csv(path)
    runs = read_runs(path)
    assert runs.about.height + sum(runs.left_out.values()) == 400
    _, frame = validate(runs)
    assert np.isfinite(frame["step_time_s"].to_numpy()).all() and (frame["step_time_s"] > 0).all()
    assert np.isfinite(frame["memory_byte"].to_numpy()).all()


def test_the_two_tables_are_apart_and_read_as_one() -> None:
    """Every further row says where it was printed, none is of a family of the other table, and all are read."""
    rows = pl.read_csv(FURTHER_RUNS, infer_schema=False)
    assert rows.columns == PUBLISHED.columns and rows["run_id"].n_unique() == rows.height
    assert rows["source_url_or_repo_path"].null_count() == 0
    assert not set(rows["family"]) & set(PUBLISHED["family"])
    unseen = pl.read_csv(FURTHER_RUNS.with_name("unseen_runs.csv"), infer_schema=False)
    assert unseen.columns == PUBLISHED.columns
    assert not set(unseen["family"]) & (set(PUBLISHED["family"]) | set(rows["family"]))
    further, both = read_runs(FURTHER_RUNS), read_runs(PUBLISHED_RUNS, FURTHER_RUNS)
    assert further.about.height == rows.height and not further.left_out
    assert both.about["table"].unique(maintain_order=True).to_list() == ["published_runs.csv", "further_runs.csv"]
    for name, values in both.columns.items():
        np.testing.assert_array_equal(values[-rows.height :], further.columns[name])


def test_a_run_given_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, {})
    with pytest.raises(UserError, match=r"runs\.csv: run_id a: is in more than one table; give each run once"):
        read_runs(path, path)
