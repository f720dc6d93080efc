"""Scaling rules: rounding, and the published points of the reference model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.scaling import family_points, family_widths, round_to_smooth, smooth_numbers
from pipeline.catalogue import CONF_DIRECTORY, read_yaml
from pipeline.families import load_family

FACTORS = (1, 3, 5, 7, 9)


def rules(name: str):
    return load_family(read_yaml(CONF_DIRECTORY / "model" / f"{name}.yaml"), f"model/{name}.yaml")


@given(st.floats(1.0, 1e12))
def test_rounding_is_to_the_nearest(value: float) -> None:
    members = smooth_numbers(FACTORS)
    nearest = round_to_smooth(np.array([value]), FACTORS)[0]
    assert abs(nearest - value) == np.abs(members - value).min()


def test_a_tie_goes_to_the_smaller() -> None:
    # members 8, 9, 10, 12, 14: 11 lies between 10 and 12, 13 between 12 and 14
    assert round_to_smooth(np.array([11.0, 13.0]), FACTORS).tolist() == [10, 12]


def test_the_reference_family_has_its_55_widths() -> None:
    widths = family_widths(rules("epoch_dense"))
    assert len(widths) == 55
    assert widths[0] == 12288
    assert widths[-1] == 12288 * 128


@pytest.mark.parametrize(
    ("width", "layers", "experts"), [(12288, 192, 8), (20480, 288, 14), (53248, 576, 36), (65536, 640, 40)]
)
def test_published_depths_and_experts(width: int, layers: int, experts: int) -> None:
    # arXiv 2411.01137's public code, executed
    points = family_points(rules("epoch_sparse"), np.array([width]))
    assert points.layer_count.tolist() == [layers]
    assert points.expert_count.tolist() == [experts]


def test_dense_flop_is_120_parameters_squared() -> None:
    points = family_points(rules("epoch_dense"), family_widths(rules("epoch_dense")))
    np.testing.assert_allclose(points.training_flop, 120 * points.parameter_count**2, rtol=1e-12)


@pytest.mark.parametrize("name", ["epoch_dense", "epoch_sparse", "dense", "sparse", "epoch_dense_deepseek_batch"])
def test_batches_are_whole_sequences_for_each_expert(name: str) -> None:
    points = family_points(rules(name), family_widths(rules(name)))
    assert (points.global_batch_token % (points.sequence_token * points.expert_count) == 0).all()
    assert (np.diff(points.training_flop) > 0).all()
