"""Kernels compiled beside a search: there when it ends, once a process, never on a single core."""

import threading

import numpy as np
import pytest

from models.evaluate import kernel, outcomes
from pipeline import ahead
from pipeline.bench_work import H100, grid_of, winners
from pipeline.block import Block
from pipeline.physics import PhysicsEntry

LEVELS = 2


@pytest.fixture
def block(monkeypatch: pytest.MonkeyPatch) -> Block:
    monkeypatch.setattr(ahead.device, "available_cores", lambda: [0, 1])
    monkeypatch.setattr(ahead, "_begun", {})
    return grid_of(*H100, "run.training_flop_maximum=1e25").blocks[0]


def compiled() -> int:
    return kernel("outcome", LEVELS, is_quick=True)._cache_size()


def test_what_was_waited_for_is_compiled_and_not_again(block: Block) -> None:
    assert isinstance(block.physics, PhysicsEntry)
    kernel.cache_clear()
    ahead.compile_outcomes(block.physics.physics, LEVELS, 5)()
    assert compiled() == 1
    outcomes(np.ones((len(ahead.point_names(LEVELS)), 5)), block.physics.physics, LEVELS)
    ahead.compile_outcomes(block.physics.physics, LEVELS, 5)()
    assert compiled() == 1


def test_a_sweep_ends_with_the_same_rows_on_one_core_and_on_two(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = grid_of(*H100, "run.training_flop_maximum=1e25")
    two = winners(grid)
    monkeypatch.setattr(ahead.device, "available_cores", lambda: [0])
    one = winners(grid)
    assert two.keys() == one.keys()
    assert all(np.array_equal(two[name], one[name], equal_nan=two[name].dtype.kind == "f") for name in two)


def test_one_core_begins_nothing(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(block.physics, PhysicsEntry)
    monkeypatch.setattr(ahead.device, "available_cores", lambda: [0])
    before = threading.active_count()
    ahead.compile_outcomes(block.physics.physics, LEVELS, 5)()
    assert threading.active_count() == before
    assert ahead._begun == {}
