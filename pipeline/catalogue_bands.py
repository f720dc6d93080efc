"""Plausible ranges, each with its reason. They are wide: they catch a wrong unit, not a wrong digit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.catalogue_parameters import parameter_counts
from pipeline.catalogue_schema import Chip, ModelShape, Topology


@dataclass(frozen=True)
class Band:
    """A plausible range of something computed from a chip, with its reason."""

    key: str
    low: float
    high: float
    unit: str
    reason: str


CHIP_BANDS = (
    Band("hbm_byte", 1e9, 1e12, "B", "accelerators carry 1 GB to 1 TB"),
    Band("hbm_byte_per_s", 1e11, 1e14, "B/s", "0.1 TB/s (2010) to 22 TB/s (2026); a wafer of SRAM is the exception"),
    Band("l2_byte", 2.5e5, 2e9, "B", "caches have 0.5 to 512 MiB"),
    Band("process_node_nm", 1, 90, "nm", "90 nm (2006) to 2 nm (2026)"),
    Band("die_area_mm2", 100, 3000, "mm2", "one to four reticles of about 830 mm2"),
    Band("transistor_count", 1e9, 1e12, "1", "3e9 (2010) to 3.4e11 (2026)"),
    Band("tdp_w", 50, 3000, "W", "70 W (T4) to 1800 W (Rubin)"),
    Band("boost_clock_hz", 3e8, 3.5e9, "Hz", "0.7 to 2.6 GHz"),
    Band("scale_up_latency_s", 2e-7, 1e-4, "s", "a hop takes 0.3 us at least, software tens of us"),
    Band("scale_out_latency_s", 3e-7, 1e-3, "s", "an adapter takes 0.5 us at least"),
    Band("matmul_latency_s", 1e-7, 1e-4, "s", "a kernel launch takes microseconds"),
)
FLOP_PER_BYTE = Band(
    "peak / hbm_byte_per_s", 5, 1000, "FLOP/B", "8 (GTX 580) to 650 (BR100): memory is built to feed the units"
)
SCALE_UP_SHARE = Band("scale_up_one_way_byte_per_s / hbm_byte_per_s", 0.005, 0.6, "1", "a link is slower than memory")
USD_PER_TFLOP = Band("release_price_usd / peak TFLOP/s", 2.0, 4000.0, "USD/TFLOP/s", "9 (TPU v5e) to 1957 (K20X)")
USD_PER_CHIP = Band("release_price_usd", 400.0, 2e5, "USD", "500 (GTX 580) to 60,000; a wafer is the exception")
EXCEPTIONS = {"cerebras_wse3": "a wafer, not a chip"}
BEST_PORT_BYTE_PER_S = ((2010, 6.8e9), (2014, 12.5e9), (2018, 25e9), (2021, 50e9), (2024, 100e9), (2026, 200e9))
BEST_PORT_SHARE = 1.6  # several adapters may serve one accelerator


def outside(file: str, value: float, band: Band) -> Iterator[str]:
    """Yield the finding if a value lies outside its band."""
    if not band.low <= value <= band.high:
        yield (
            f"{file}: {band.key} = {value:.4g} {band.unit}: outside {band.low:g} to {band.high:g} ({band.reason}); "
            f"check the unit: base units, bytes not bits, GB = 1e9, dollars not thousands"
        )


def implausible_chip(chip: Chip) -> Iterator[str]:
    """Yield what cannot be right about a chip."""
    if chip.id in EXCEPTIONS or chip.reference_name:
        return
    for band in CHIP_BANDS:
        value = getattr(chip, band.key)
        if value is not None:
            yield from outside(chip.file, value, band)
    peaks = [getattr(chip, f"peak_dense_{p}_flop_per_s") for p in ("bf16", "fp16", "fp32")]
    peak = max(p for p in peaks if p) if any(peaks) else None
    if peak and chip.hbm_byte_per_s:
        yield from outside(chip.file, peak / chip.hbm_byte_per_s, FLOP_PER_BYTE)
    if peak and chip.release_price_usd:
        yield from outside(chip.file, chip.release_price_usd, USD_PER_CHIP)
        yield from outside(chip.file, chip.release_price_usd / (peak / 1e12), USD_PER_TFLOP)
    if chip.scale_up_one_way_byte_per_s and chip.hbm_byte_per_s:
        yield from outside(chip.file, chip.scale_up_one_way_byte_per_s / chip.hbm_byte_per_s, SCALE_UP_SHARE)
    if chip.hbm_byte and (chip.hbm_byte / 5e8) % 1:
        yield (
            f"{chip.file}: hbm_byte = {chip.hbm_byte:.6g}: not a multiple of 0.5 GB, as memories are sold; "
            "GB = 1e9 B, so write 80 GB as 8.0e+10 even where the vendor means GiB"
        )
    if chip.scale_out_one_way_byte_per_s and chip.released:
        year = int(chip.released[:4])
        best = max(rate for since, rate in BEST_PORT_BYTE_PER_S if since <= max(year, 2010))
        band = Band(
            "scale_out_one_way_byte_per_s",
            1e8,
            BEST_PORT_SHARE * best,
            "B/s",
            f"the best adapter of {year} gives {best:g}",
        )
        yield from outside(chip.file, chip.scale_out_one_way_byte_per_s, band)


LEVEL_BANDS = (
    Band("one_way_byte_per_s", 1e6, 4e12, "B/s", "a slow Internet line to the links of 2026"),
    Band("latency_s", 1e-7, 1.0, "s", "a hop on a chip's own link to a satellite"),
    Band("group_ranks", 1, 1e6, "1", "one to the largest site"),
    Band("distance_m", 1, 2e7, "m", "a room to half the way round the Earth"),
)
SLOWER_ABOVE = Band("bandwidth of a level / of the level below", 0, 1.2, "1", "networks get slower with distance")
MODEL_BANDS = (
    Band("layer_count", 1, 1000, "1", "AlexNet has 8, the deepest transformers some hundreds"),
    Band("d_model", 64, 2e5, "1", "768 (GPT-2) to 25,600 (1T models)"),
    Band("head_dim", 16, 1024, "1", "64 to 256"),
    Band("vocabulary", 100, 2e6, "1", "30,000 to 262,000"),
    Band("sequence_token", 16, 2e7, "token", "512 (BERT) to ten million"),
    Band("published.training_token", 1e6, 1e15, "token", "1e9 to 4e13"),
    Band("published.training_flop", 1e15, 1e28, "FLOP", "5e17 (AlexNet) to 5e26"),
    Band("published.cost_usd", 100, 1e10, "USD", "4,000 (GPT-2) to 3e8: dollars, not thousands or millions"),
    Band("published.accelerator_hour", 1, 1e10, "h", "264 (AlexNet) to 2e8"),
)
FF_WIDTH = Band("d_ff / d_model", 0.2, 12, "1", "4 without a gate, 2.7 to 8 with one, less for single experts")
COUNTED = Band("computed / published parameters", 0.9, 1.1, "1", "the shape makes the model; give another block if not")
FLOP_PER_TOKEN = Band(
    "published FLOP / (6 x parameters x tokens)", 0.3, 4.0, "1", "attention and recompute add, at most"
)
ROW_BANDS = {
    "usd": Band("usd", 10, 5e6, "USD", "30 (a used card) to 2.5e6 (a wafer)"),
    "usd_per_s": Band("usd_per_s", 5e-6, 0.02, "USD/s", "2 cents to 70 dollars an hour"),
    "pue_ratio": Band("pue_ratio", 1.0, 4.0, "1", "power of the building / of its computers"),
    "electricity_price_usd_per_j": Band("electricity_price_usd_per_j", 2e-9, 3e-7, "USD/J", "1 cent to 1 dollar a kWh"),
    "carbon_kg_per_j": Band("carbon_kg_per_j", 0, 4e-7, "kg/J", "0 to 1.4 kg a kWh"),
    "server_power_ratio": Band("server_power_ratio", 1.0, 4.0, "1", "a server draws more than its chips"),
    "power_fraction": Band("power_fraction", 0.1, 1.2, "1", "share of the thermal design power"),
    "consumer_price_index": Band("consumer_price_index", 100, 1000, "1", "1982-84 = 100"),
}


def implausible_topology(topology: Topology) -> Iterator[str]:
    """Yield what cannot be right about a network."""
    below = None
    for index, level in enumerate(topology.levels):
        for band in LEVEL_BANDS:
            value = getattr(level, band.key)
            if value is not None:
                yield from outside(f"{topology.file} levels[{index}]", value, band)
        rate = level.one_way_byte_per_s
        if rate and below:
            yield from outside(f"{topology.file} levels[{index}]", rate / below, SLOWER_ABOVE)
        below = rate or below


def implausible_model(model: ModelShape) -> Iterator[str]:
    """Yield what cannot be right about a model."""
    published = model.published
    for band in MODEL_BANDS:
        owner: Any = published if band.key.startswith("published.") else model
        value = getattr(owner, band.key.removeprefix("published."))
        if value is not None:
            yield from outside(model.file, value, band)
    for width in (model.d_ff, model.expert_d_ff):
        if width and model.d_model:
            yield from outside(model.file, width / model.d_model, FF_WIDTH)
    if model.kind == "shape" and published.parameter_count:
        total, _ = parameter_counts(model)
        yield from outside(model.file, total / published.parameter_count, COUNTED)
    parameters = published.active_parameter_count or published.parameter_count
    if model.kind == "shape" and parameters and published.training_token and published.training_flop:
        share = published.training_flop / (6.0 * parameters * published.training_token)
        yield from outside(model.file, share, FLOP_PER_TOKEN)


def implausible_rows(file: str, rows: list[dict[str, str]]) -> Iterator[str]:
    """Yield the rows of a data file of conf/economics whose number cannot be right."""
    for number, row in enumerate(rows, start=2):
        numbers: Mapping[str, str] = row if "quantity" not in row else {row["quantity"]: row["value"]}
        for key, band in ROW_BANDS.items():
            if numbers.get(key):
                yield from outside(f"{file} line {number}", float(numbers[key]), band)


def implausible(entry: Any) -> list[str]:
    """Return what cannot be right about an entry of any kind."""
    if isinstance(entry, Chip):
        return list(implausible_chip(entry))
    if isinstance(entry, Topology):
        return list(implausible_topology(entry))
    return list(implausible_model(entry)) if isinstance(entry, ModelShape) else []
