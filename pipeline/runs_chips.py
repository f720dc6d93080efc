"""From the chip and network that a published run names to what the model takes of them."""

import re
from collections.abc import Mapping
from dataclasses import replace

from pipeline.accelerators import one_pod
from pipeline.catalogue import Chip, peak_flop_per_s
from pipeline.runs_table import Row

ALIASES = {
    "v100_sxm2_16": ("v100sxm16gb", "v100sxm216gb", "v10016gb"),
    "v100_sxm2_32": ("v100", "v100sxm32gb", "v100sxm232gb"),
    "p100_sxm2": ("p100",),
    "p100_pcie": ("p100pcie",),
    "a100_sxm4_80": ("a100", "a100sxm", "a100sxm80gb", "a10080gb"),
    "a100_sxm4_40": ("a100sxm40gb", "a100sxm440gb", "a10040gb"),
    "a100_pcie_80": ("a100pcie", "a100pcie80gb", "a10080gbpcie"),
    "a100_pcie_40": ("a100pcie40gb", "a10040gbpcie"),
    "a800_sxm": ("a800",),
    "h100_sxm5": ("h100", "h100sxm"),
    "h100_pcie": ("h100nvl", "h100pcie"),
    "h800_sxm5": ("h800",),
    "h200_sxm": ("h200", "gh200"),
    "b200": ("b200sxm",),
    "b300": ("b300sxm",),
    "gb200_nvl72": ("gb200",),
    "gb300_nvl72": ("gb300",),
    "rubin_vr200": ("vr200", "rubin"),
    "mi250x": ("mi250",),
    "gaudi2": ("hlsgaudi2", "hl225"),
    "gaudi3": ("hl325",),
    "ascend910b": ("910b",),
    "ascend910c": ("910c",),
    "trainium1": ("trn1",),
    "trainium2": ("trn2",),
    "trainium3": ("trn3",),
    "tpu_v4": ("v4",),
    "tpu_v5e": ("v5e", "tpuv5lite", "v5lite"),
    "tpu_v5p": ("v5p",),
    "tpu_v6e": ("v6e", "trillium"),
    "tpu_v7": ("ironwood", "tpu7x", "v7x"),
}
"""Entries of conf/hardware and other names for them: lower case, letters and digits only."""
MAKERS = ("nvidia", "amd", "google", "aws", "intel", "huawei", "cloud", "tesla", "geforce", "instinct", "dgx", "hgx")

VARIANTS = {
    # Meta's Grand Teton H100: HBM2e at 2.4 TB/s, limited to 500 W (torchtitan, README of its performance results)
    "h100sxm96gb500w": {"hbm_byte": 9.6e10, "hbm_byte_per_s": 2.4e12, "tdp_w": 500.0},
}
PRECISIONS = {
    "fp4": ("fp4", "float4"),
    "fp8": ("fp8", "float8", "e4m3", "e5m2"),
    "int8": ("int8", "aqt"),
    "bf16": ("bf",),
    "fp16": ("fp16", "float16", "half"),
    "tf32": ("tf32", "tensorfloat"),
    "fp32": ("fp32", "float32", "single"),
}
"""Formats of the linear layers, fewest bits first, and the words that name them: `bf16+fp8` and `MXFP8` are FP8."""
BIT_PER_BYTE, GB_BYTE = 8.0, 1e9
SAME_MEMORY_FRACTION = 0.1  # 192 GB and 180 GB are one B200, with and without what its repair blocks
OMNI_PATH_BIT_PER_S, OMNI_PATH_PORTS = 100e9, 4.0  # the one speed Omni-Path 100 has; ports of a Jean Zay node
FALLBACK_BYTE_PER_S = 12.5e9  # 100 Gb/s for each accelerator, where neither run nor catalogue knows the network
FALLBACK_DOMAIN_RANKS = 8.0  # accelerators of a server, where neither says


LONGER_NUMBER = re.compile(r"0|\d(?!\d)")
"""What may not follow a name that ends in a digit: H1000 is no H100, H100 80 GB is one, Ascend 910B3 is a 910B."""


def chip_of(gpu: str, chips: Mapping[str, Chip]) -> Chip | None:
    """Return the catalogue's chip for a name in a runs table: by the longest name that it starts with."""
    name = plain_name(gpu)
    stripped = True
    while stripped:
        stripped = next((maker for maker in MAKERS if name.startswith(maker)), "")
        name = name.removeprefix(stripped)
    known = {plain_name(each): each for each in chips}
    known |= {alias: chip for chip, aliases in ALIASES.items() for alias in aliases if chip in chips}
    begins = [each for each in known if name.startswith(each)]
    found = [each for each in begins if not (each[-1].isdigit() and LONGER_NUMBER.match(name.removeprefix(each)))]
    if not found:
        return None
    longest = max(found, key=len)
    chip = chips[known[longest]]
    return replace(chip, **(VARIANTS.get(name) or stated_memory(chip, name.removeprefix(longest))))


def stated_memory(chip: Chip, rest: str) -> dict[str, float]:
    """Return the memory that the rest of a name states where it is not the catalogue's: H100 94 GB, A100 64 GB."""
    stated = re.search(r"(\d{2,3})gb", rest)
    byte = float(stated[1]) * GB_BYTE if stated else 0.0
    differs = abs(byte / (chip.hbm_byte or 1.0) - 1.0) > SAME_MEMORY_FRACTION
    return {"hbm_byte": byte} if byte and differs else {}


def plain_name(name: str) -> str:
    """Return a name in lower case, letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def precision_of(row: Row, chip: Chip, flags: list[str]) -> str:
    """Return the precision of the linear layers; what the chip lacks or no word names falls back to its 16 bits.

    What is called fp32 is TF32 on NVIDIA's chips that have it: the vendor's containers multiply so by default.
    """
    given = row["precision"].lower()
    found = next((name for name, words in PRECISIONS.items() if any(each in given for each in words)), "")
    if found == "fp32" and chip.vendor == "NVIDIA" and peak_flop_per_s(chip, "tf32"):
        flags.append("precision")
        return "tf32"
    if not found or not peak_flop_per_s(chip, found):
        flags.append("precision")
        found = next((name for name in ("bf16", "fp16", "fp32") if peak_flop_per_s(chip, name)), "fp32")
    return found


def run_links(row: Row, chip: Chip) -> dict[str, float]:
    """Return the fields of `Links`: the server or rack is the scale-up domain, a published port speed goes first."""
    node = row["gpus_per_node"] or chip.scale_up_ranks or FALLBACK_DOMAIN_RANKS
    is_rack = "nvl72" in chip.id
    own = chip.scale_out_one_way_byte_per_s or FALLBACK_BYTE_PER_S
    return {
        "scale_up_byte_per_s": chip.scale_up_one_way_byte_per_s or FALLBACK_BYTE_PER_S,
        "scale_out_byte_per_s": published_port_byte_per_s(row["network_note"], node) or own,
        "domain_ranks": (chip.scale_up_ranks or node) if is_rack else node,
        **one_pod(),
    }


def published_port_byte_per_s(note: str, rank_per_node: float) -> float | None:
    """Return the one-way bandwidth of an accelerator out of its server that a note states, None if it states none.

    `8x400Gb/s per node`, `400 Gb/s per GPU`, `1600 Gbps node-node`, `3.2 Tb/s inter-node`. Capital B (bytes) is not
    a port speed.
    """
    if ports := re.search(r"(\d+)\s?x\s?(?:[A-Za-z]+\s?)*?(\d+(?:\.\d+)?)\s?(T|G)?(?:b/s|bps|b|\b)", note):
        if re.search(r"per (?:\w+ )?node|IB|NDR|HDR|Omni|Eth|RoCE|EFA", note):
            return float(ports[1]) * _bits(ports[2], ports[3]) / BIT_PER_BYTE / rank_per_node
    speed = r"(\d+(?:\.\d+)?)\s?(T|G)(?:b/s|bps|bit/s)"
    if each := re.search(speed + r"(?: \w+)? ?(?:per|/) ?(?:GPU|accelerator|chip)", note):
        return _bits(each[1], each[2]) / BIT_PER_BYTE
    if node := re.search(speed + r" (?:node-node|inter-?node|(?:\w+ )?per (?:\w+ )?node)", note):
        return _bits(node[1], node[2]) / BIT_PER_BYTE / rank_per_node
    if "Omni-Path" in note or "Jean Zay" in note:
        return OMNI_PATH_PORTS * OMNI_PATH_BIT_PER_S / BIT_PER_BYTE / rank_per_node
    return None


def _bits(number: str, prefix: str | None) -> float:
    return float(number) * (1e12 if prefix == "T" else 1e9)
