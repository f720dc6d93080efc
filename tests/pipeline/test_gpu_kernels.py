"""Every kernel that a sweep runs compiles to a GPU's program: checked without one, by lowering it for that platform."""

import re
from collections.abc import Callable
from typing import Any

import jax
import pytest
from jax import export

from models import evaluate, evaluate_layouts
from pipeline.config import compose_study
from pipeline.grid import build_grid
from pipeline.simulate import unit_tables

TINY = ("study=reference_model", "topology=vendor")
EPOCH = (*TINY, "physics=epoch2024", "hardware=epoch_h100_sxm", "model=epoch_dense", "run.training_flop_maximum=1e26")
CALIBRATED = (*TINY, "physics=calibrated", "hardware=h100_sxm5", "model=mixtral_8x22b", "axes.accelerator_count=[64]")
STUDIES = {
    "bound best outcome cost": EPOCH,
    "each": (*EPOCH, "keep=top:3"),
    "expand": (*EPOCH, "keep=all"),
    "transformer transformer_best": CALIBRATED,
    "transformer_time": (*CALIBRATED, "keep=top:3"),
    "transformer_expand": (*CALIBRATED, "keep=all"),
}


def kernels_of(study: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Any, Any]]:
    """Return the kernels that a study runs and what each was given first."""
    found: dict[str, tuple[Any, Any]] = {}
    kernel = evaluate.kernel

    def watched(name: str, *more: Any, **options: Any) -> Callable[..., Any]:
        run = kernel(name, *more, **options)

        def noted(*given: Any) -> Any:
            found.setdefault(name, (run, given))
            return run(*given)

        return noted

    for module in (evaluate, evaluate_layouts):
        monkeypatch.setattr(module, "kernel", watched)
    grid = build_grid(compose_study(list(study)))
    list(unit_tables(grid, range(min(grid.size, 2))))
    return found


@pytest.mark.parametrize("platform", ["cuda", "rocm"])
@pytest.mark.parametrize("expected", STUDIES)
def test_the_kernels_of_a_study_lower_for_a_gpu(expected: str, platform: str, monkeypatch: pytest.MonkeyPatch):
    """In float64, with nothing that asks the host or a CPU's library in the middle."""
    found = kernels_of(STUDIES[expected], monkeypatch)
    assert set(expected.split()) <= set(found)
    for run, given in found.values():
        # Numbers alone: JAX describes arguments by objects of its own, which the tests' type checks refuse in bundles.
        leaves, shape = jax.tree.flatten(given)
        batched = run.__wrapped__  # compiled again: options for the CPU belong to the CPU's program
        flat = jax.jit(lambda *each, run=batched, shape=shape: run(*jax.tree.unflatten(shape, each)))
        program = export.export(flat, platforms=[platform])(*leaves)
        assert program.platforms == (platform,)
        text = program.mlir_module()
        assert "tensor<" in text and not re.search(r"custom_call|f32>", text)
