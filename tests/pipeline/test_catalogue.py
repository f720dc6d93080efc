"""The catalogue at the door: what it hands to the physics, and every mistake as one line."""

import math

import pytest

from pipeline.catalogue import (
    hardware_fields,
    load_chip,
    load_topology,
    network_fields,
    read_entries,
    resolved_precision,
)
from pipeline.errors import UserError

EXACT = 0.0


def tiny_chip() -> dict:
    """Return a complete mapping of a chip with round numbers."""
    return {
        "name": "Tiny",
        "vendor": "ACME",
        "released": "2020-01",
        "hbm_byte": 1e10,
        "hbm_byte_per_s": 1e12,
        "l2_byte": 1e6,
        "l2_byte_per_s": 2e12,
        "multiprocessor_count": 10,
        "register_block_byte": 65536,
        "register_blocks_per_multiprocessor": 4,
        "shared_memory_byte_per_s": 1e13,
        "has_distributed_shared_memory": 0,
        "peak_dense_fp16_flop_per_s": 1e14,
        "peak_dense_fp32_flop_per_s": 1e13,
        "sustained_fraction": 0.8,
        "matmul_latency_s": 1e-6,
        "scale_up_ranks": 8,
        "scale_up_one_way_byte_per_s": 1e11,
        "scale_up_latency_s": 1e-6,
        "scale_out_one_way_byte_per_s": 1e10,
        "scale_out_latency_s": 5e-6,
    }


def two_levels(**second: object) -> dict:
    """Return the mapping of a topology of scale-up and scale-out."""
    return {"name": "two", "levels": [{"from": "scale_up"}, {"from": "scale_out", **second}]}


def test_reference_peak_is_the_product_of_its_constants() -> None:
    chips = read_entries("hardware")
    assert chips["epoch_h100_sxm"].peak_dense_bf16_flop_per_s == 32 * (128 * 132) * 1830e6
    assert chips["epoch_v100_sxm"].peak_dense_fp16_flop_per_s == 8 * (128 * 80) * 1533e6
    assert chips["epoch_a100_sxm"].shared_memory_byte_per_s == 128 * 108 * 1410e6


def test_reference_bandwidth_is_stored_one_way() -> None:
    chip = read_entries("hardware")["epoch_h100_sxm_superpod"]
    levels = network_fields(chip, read_entries("topology")["vendor"])
    assert [level["one_way_byte_per_s"] for level in levels] == [4.5e11, 2.25e11, 5e10]
    assert [level["group_ranks"] for level in levels] == [8.0, 32.0, math.inf]


def test_precision_auto_prefers_bf16_then_fp16_then_fp32() -> None:
    values = tiny_chip()
    assert resolved_precision(load_chip(values, "hardware/tiny.yaml"), "auto") == "fp16"
    with_bf16 = load_chip(values | {"peak_dense_bf16_flop_per_s": 9e13}, "hardware/tiny.yaml")
    assert hardware_fields(with_bf16, "auto")["peak_flop_per_s"] == 9e13
    fp32_only = load_chip(values | {"peak_dense_fp16_flop_per_s": None}, "hardware/tiny.yaml")
    assert hardware_fields(fp32_only, "auto")["peak_flop_per_s"] == 1e13


def test_hardware_fields_are_those_of_the_physics() -> None:
    from dataclasses import fields

    from models.point import Hardware, NetworkLevel

    chip = load_chip(tiny_chip(), "hardware/tiny.yaml")
    assert set(hardware_fields(chip, "auto")) == {f.name for f in fields(Hardware)}
    level = network_fields(chip, load_topology(two_levels(), "topology/two.yaml"))[0]
    assert set(level) == {f.name for f in fields(NetworkLevel)}


def test_oversubscription_divides_and_distance_delays() -> None:
    chip = load_chip(tiny_chip(), "hardware/tiny.yaml")
    topology = load_topology(two_levels(oversubscription_ratio=4, distance_m=1e6), "topology/two.yaml")
    last = network_fields(chip, topology)[-1]
    assert last["one_way_byte_per_s"] == 2.5e9
    assert last["latency_s"] == pytest.approx(5e-6 + 1e6 * 1.468 / 299792458.0, rel=1e-15)


def test_a_chip_alone_in_its_domain_has_one_level() -> None:
    chip = load_chip(tiny_chip() | {"scale_up_ranks": 1}, "hardware/tiny.yaml")
    assert len(network_fields(chip, load_topology(two_levels(), "topology/two.yaml"))) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hbm_bytes": 1.0}, ["hbm_bytes", "unknown key", "did you mean hbm_byte?"]),
        ({"hbm_byte": None}, ["hbm_byte", "missing", "give it"]),
        ({"hbm_byte_per_s": -1.0}, ["hbm_byte_per_s", "-1.0", "must be >="]),
        ({"peak_dense_fp16_flop_per_s": 989.0}, ["= 989.0", "must be >= 1e+08 FLOP/s"]),
        ({"matmul_latency_s": 4.5}, ["matmul_latency_s = 4.5", "must be <= 1 s"]),
        ({"source": {"hbm_byte": "x" * 200}}, ["source = {'hbm_byte'", "...: unknown key; did you mean sources?"]),
        ({"hbm_byte": "989e12"}, ["hbm_byte", "989e12", "must be a number"]),
        ({"released": 2020}, ["released", "2020", "must be text"]),
        ({"market": "gaming"}, ["market", "gaming", "datacenter, consumer"]),
        ({"sustained_fraction": 80.0}, ["sustained_fraction", "80.0", "must be <= 1"]),
        ({"hbm_byte": math.nan}, ["hbm_byte", "nan"]),
        ({"sources": {"hbm_byte": {"ref": "x", "kind": "guess"}}}, ["sources.hbm_byte.kind", "guess", "one of"]),
        ({"sources": {"hbm_byte": {"ref": "x", "kind": "assumption"}}}, ["sources.hbm_byte", "low and high"]),
        ({"network_levels": []}, ["network_levels", "1 to 4"]),
        ({"network_levels": [{"group_ranks": 8}]}, ["network_levels[0].group_ranks", "unbounded"]),
        ({"network_levels": [{"latency_s": 1e-6}]}, ["network_levels[0].one_way_byte_per_s", "missing"]),
    ],
)
def test_a_mistake_is_one_line(change: dict, words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        load_chip(tiny_chip() | change, "hardware/tiny.yaml")
    message = str(caught.value)
    assert message.startswith("hardware/tiny.yaml: ") and "\n" not in message
    assert all(word in message for word in words), message


def test_no_peak_at_the_precision_says_which_there_are() -> None:
    with pytest.raises(UserError, match="has no fp8 peak.*fp32, fp16"):
        hardware_fields(load_chip(tiny_chip(), "hardware/tiny.yaml"), "fp8")
    with pytest.raises(UserError, match="must be one of auto"):
        hardware_fields(load_chip(tiny_chip(), "hardware/tiny.yaml"), "fp17")


def test_a_network_that_needs_what_the_chip_lacks_is_refused() -> None:
    chip = load_chip(tiny_chip() | {"scale_out_latency_s": None}, "hardware/tiny.yaml")
    with pytest.raises(UserError, match="scale_out_latency_s"):
        network_fields(chip, load_topology(two_levels(), "topology/two.yaml"))
