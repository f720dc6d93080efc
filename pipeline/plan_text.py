"""A plan on one screen."""

from collections.abc import Mapping
from typing import Any

DAY_S = 86400.0
COST_NAMES = {
    "purchase_usd": "purchase of the cluster",
    "amortised_hardware_usd": "hardware written off",
    "energy_usd": "electricity",
    "total_usd": "written off + electricity",
    "cloud_usd": "or rent, on demand",
}
MILLION = 1e6


def layout_text(layout: Mapping[str, float]) -> str:
    """Return a layout in one short line: degrees, microbatch, schedule, sharding, recomputation.

    CP4 is a ring, CP4a an all-to-all among all, CP8a2 among pairs of a ring of four.
    """
    names = {"tensor": "TP", "context": "CP", "pipeline": "PP", "expert": "EP", "data": "DP"}
    parts = [
        f"{short}{int(layout[f'{name}_ranks'])}"
        for name, short in names.items()
        if layout[f"{name}_ranks"] > 1 or name in ("tensor", "pipeline", "data")
    ]
    exchanged = int(layout["context_all_to_all_ranks"])
    if exchanged > 1:
        suffix = "a" if exchanged == layout["context_ranks"] else f"a{exchanged}"
        parts = [part + suffix if part.startswith("CP") else part for part in parts]
    parts.append(f"mb{int(layout['microbatch_sequence'])}x{int(layout['microbatch_count'])}")
    if layout["pipeline_ranks"] > 1:
        interleaved = f"1F1B v{int(layout['interleave_count'])}" if layout["interleave_count"] > 1 else "1F1B"
        parts.append("ZB" if layout["is_zero_bubble"] else interleaved)
    parts.append(f"ZeRO{int(layout['sharding_stage'])}")
    if layout["recompute_layer_fraction"] > 0.0:
        parts.append(f"recompute {layout['recompute_layer_fraction']:.0%}")
    return " ".join(parts)


def _money(usd: float | None) -> str:
    return "unknown" if usd is None else f"{usd / MILLION:,.3g} M" if usd < 1e9 else f"{usd / MILLION:,.0f} M"


def _time(seconds: float) -> str:
    return f"{seconds / DAY_S:,.3g} days" if seconds < 1000 * DAY_S else f"{seconds / DAY_S / 365.25:,.3g} years"


def _compared(other: Mapping[str, Any] | None) -> str:
    if other is None:
        return "none other fits"
    return f"{layout_text(other['layout'])}  ({other['time_ratio'] - 1.0:+.1%} time)"


def plan_lines(plan: Mapping[str, Any]) -> list[str]:
    """Return one plan as lines."""
    head = f"{plan['accelerator_count']:,} x {plan['hardware']} ({plan['precision']}, network {plan['topology']})"
    if not plan["fits"]:
        return [head, *_does_not_fit(plan)]
    best = plan["best"]
    share = best["memory_byte"] / best["hbm_byte"]
    lines = [
        f"{head}: fits, {best['memory_byte'] / 1e9:.0f} of {best['hbm_byte'] / 1e9:.0f} GB ({share:.0%})",
        f"  best       {layout_text(best['layout'])}",
        f"  next best  {_compared(plan['next_best'])}",
    ]
    if "given" in plan:
        given = plan["given"]
        lines.append(f"  by hand    {_compared(given) if given['is_possible'] else 'does not run: ' + given['reason']}")
    costs = ", ".join(f"{name} {_money(best['cost'][key])}" for key, name in COST_NAMES.items())
    utilisation = f"MFU {best['model_flop_utilisation_fraction']:.1%}, goodput {best['goodput_fraction']:.1%}"
    return [
        *lines,
        f"  time       {_time(best['run_time_s'])}, {best['token_per_s']:,.3g} tokens/s, step "
        f"{best['step_time_s']:.3g} s, {utilisation}",
        f"  limit      {best['bottleneck']}, {best['bottleneck_share']:.0%} of the step beside the matmuls' "
        f"{best['part_time_s'].get('matmul', 0.0) / best['step_time_s']:.0%}",
        f"  cost, USD  {costs}",
    ]


def _does_not_fit(plan: Mapping[str, Any]) -> list[str]:
    least, has = plan["least_memory_byte"], plan["hbm_byte"] / 1e9
    if plan["layout_count"] == 0 or least is None:
        why = "no layout divides this model over so many"
    else:
        why = f"the leanest layout needs {least / 1e9:.0f} GB on each, it has {has:.0f}"
    lines = [f"  does not fit: {why}"]
    nearest = plan.get("nearest")
    if nearest is None:
        return [*lines, "  nearest    no larger cluster tried holds it either"]
    best = nearest["best"]
    return [
        *lines,
        f"  nearest    {nearest['accelerator_count']:,} of them: {layout_text(best['layout'])}, "
        f"{best['memory_byte'] / 1e9:.0f} GB, {_time(best['run_time_s'])}, "
        f"{_money(best['cost']['total_usd'])} written off + electricity",
    ]


def plan_text(result: Mapping[str, Any]) -> str:
    """Return the whole screen: the plans, and the arguments of the one that is done for the least money."""
    active = result["active_parameter_count"]
    mixture = f" ({active:,.4g} active)" if active < result["parameter_count"] else ""
    lines = [
        f"{result['model']}: {result['parameter_count']:,.4g} parameters{mixture}, {result['dataset_token']:,.3g} "
        f"tokens, {result['training_flop']:,.3g} FLOP, batch {result['global_batch_token']:,.3g} tokens of "
        f"{result['sequence_token']:,.0f}",
        f"Costs: {result['prices']}",
    ]
    for plan in result["plans"]:
        lines += ["", *plan_lines(plan)]
    fitting = [plan for plan in result["plans"] if plan["fits"]]
    if not fitting:
        return "\n".join([*lines, ""])
    chosen = min(fitting, key=lambda plan: (plan["best"]["cost"]["total_usd"] or 0.0, plan["best"]["run_time_s"]))
    said = chosen["arguments"]
    lines += [
        "",
        f"Arguments for {chosen['accelerator_count']:,} x {chosen['hardware']} (of the others: --json)",
        "  Megatron-LM  " + " ".join(said["megatron_lm"]),
        "  torchtitan   " + " ".join(said["torchtitan"]),
        f"  DeepSpeed    {_one_line(said['deepspeed'])}",
        *(f"  note         {each}" for each in said["remarks"]),
    ]
    return "\n".join([*lines, ""])


def _one_line(config: Mapping[str, Any]) -> str:
    import json

    return json.dumps(config)
