"""The best layout of a plan against the accelerator hours that whole training runs took: nothing is fitted to these."""

import json
import re
from pathlib import Path

import pytest

from pipeline.cli import main

README = Path(__file__).parents[2] / "README.md"
SECOND_PER_HOUR, SECOND_PER_DAY = 3600.0, 86400.0

# Accelerator hours: DeepSeek-V3 (arXiv 2412.19437, table 1: pre-training); Llama 3.1 model card; Llama 2 (arXiv
# 2307.09288, table 2); LLaMA (arXiv 2302.13971, table 15).
REPORTED = {
    "deepseek_v3": ("hardware=h800_sxm5 precision=fp8 accelerators=2048", 2048, 2.664e6),
    "llama31_405b": ("hardware=h100_sxm5 accelerators=16384", 16384, 30.84e6),
    "llama2_70b": ("hardware=a100_sxm4_80 accelerators=2048", 2048, 1.72032e6),
    "llama1_65b": ("hardware=a100_sxm4_80 accelerators=2048", 2048, 1.022362e6),
}


@pytest.mark.parametrize("model", REPORTED)
def test_whole_runs_take_somewhat_longer_than_the_best_plan(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Hours that are reported hold what failed and what was tried; a plan has the best layout of its search."""
    arguments, accelerators, hours = REPORTED[model]
    assert main(["plan", f"model={model}", *arguments.split(), "--json"]) == 0
    planned_s = json.loads(capsys.readouterr().out)["plans"][0]["best"]["run_time_s"]
    reported_s = hours * SECOND_PER_HOUR / accelerators
    assert 0.98 < reported_s / planned_s < 1.2
    said = re.sub(r"\s+", " ", README.read_text(encoding="utf-8"))
    assert f" {planned_s / SECOND_PER_DAY:.1f} " in said and f"{reported_s / SECOND_PER_DAY:.1f}" in said
