"""Time of one matrix multiplication through the memory hierarchy of an accelerator."""

import jax.numpy as jnp

from models.point import Hardware, Physics
from models.quantities import Quantity, Scalar


def tile_grid(
    *, rows: Quantity, columns: Quantity, word_byte: Quantity, capacity_byte: Quantity
) -> tuple[Scalar, Scalar]:
    """Return how many tiles a rows x columns matrix needs along each side to fit a cache (real-valued).

    count = ceil(rows columns word / capacity); tile area A = rows columns / count;
    tile height = max(min(rows, sqrt A), A / columns); tile width = A / height.
    Valid when: capacity > 0.
    Source: Erdil & Schneider-Joseph 2024 (arXiv 2411.01137), section on the memory hierarchy, and its public code.
    Ignores: whole-number tile counts along each side.
    """
    tile_count = jnp.ceil(rows * columns * word_byte / capacity_byte)
    tile_area = rows * columns / tile_count
    tile_height = jnp.maximum(jnp.minimum(rows, jnp.sqrt(tile_area)), tile_area / columns)
    tile_width = tile_area / tile_height
    return rows / tile_height, columns / tile_width


def streamed_byte(
    *,
    rows: Quantity,
    columns: Quantity,
    batch: Quantity,
    word_byte: Quantity,
    grid: tuple[Quantity, Quantity],
    capacity_byte: Quantity,
    is_weight_gradient: bool,
) -> Scalar:
    """Return the bytes that cross into one level of the memory hierarchy during one matmul.

    Weights (rows x columns) cross once, twice for a weight gradient, unless they fit: 2 rows columns word <= capacity.
    Inputs (columns x batch) cross once per tile row; outputs (rows x batch) cross 2 c - 1 times for c tile columns
    (read and write of partial sums), c times for a weight gradient, where they are read only.
    Source: arXiv 2411.01137, section on the memory hierarchy.  Ignores: cache associativity, partial reuse.
    """
    tile_rows, tile_columns = grid
    weight_passes, output_passes = (2.0, tile_columns) if is_weight_gradient else (1.0, 2.0 * tile_columns - 1.0)
    stays_resident = 2.0 * rows * columns * word_byte <= capacity_byte
    weight_byte = jnp.where(stays_resident, 0.0, weight_passes * rows * columns * word_byte)
    return weight_byte + (tile_rows * columns + output_passes * rows) * batch * word_byte


def neighbour_byte(
    *,
    rows: Quantity,
    columns: Quantity,
    batch: Quantity,
    word_byte: Quantity,
    grid: tuple[Quantity, Quantity],
    is_weight_gradient: bool,
) -> Scalar:
    """Return the bytes multiprocessors read from each other's shared memory (distributed shared memory).

    Inputs once per tile row if there is more than one; outputs 2 (c - 1) times, or c times for a weight gradient.
    Source: arXiv 2411.01137, section on the memory hierarchy (Hopper thread-block clusters).
    """
    tile_rows, tile_columns = grid
    input_byte = jnp.where(tile_rows > 1.0, tile_rows * columns * batch * word_byte, 0.0)
    output_passes = tile_columns if is_weight_gradient else 2.0 * (tile_columns - 1.0)
    output_byte = jnp.where(tile_columns > 1.0, output_passes * rows * batch * word_byte, 0.0)
    return input_byte + output_byte


def padded_matmul_flop(*, rows: Quantity, columns: Quantity, batch: Quantity, quantum: Quantity) -> Scalar:
    """Return the FLOP a matmul occupies once each side is padded to whole tensor-core chunks: 2 m k n padded.

    Source: arXiv 2411.01137, section on the memory hierarchy (chunks of 8).
    """

    def padded(side: Quantity) -> Quantity:
        return jnp.ceil(side / quantum) * quantum

    return 2.0 * padded(rows) * padded(columns) * padded(batch)


def hierarchy_matmul_time_s(
    *,
    rows: Quantity,
    columns: Quantity,
    batch: Quantity,
    word_byte: Quantity,
    hardware: Hardware,
    physics: Physics,
    is_weight_gradient: bool,
) -> Scalar:
    """Return the time of W X (or of its gradients) for W of rows x columns and a batch of columns-vectors.

    The slowest of four streams: HBM, L2, shared memory (with its neighbours and registers), arithmetic; plus a
    fixed launch latency. Caches are usable to a fixed fraction; only on-chip rates slow with the sustained clock.
    Valid when: the kernel overlaps all its data movement with arithmetic.
    Source: arXiv 2411.01137, section on the memory hierarchy.  Ignores: wave quantisation, bank conflicts.
    """
    register_byte = physics.usable_cache_fraction * hardware.register_block_byte
    shared_byte = hardware.register_blocks_per_multiprocessor * register_byte
    l2_byte = jnp.maximum(physics.usable_cache_fraction * hardware.l2_byte, shared_byte)
    multiprocessors = hardware.multiprocessor_count
    register_blocks = hardware.register_blocks_per_multiprocessor * multiprocessors
    is_distributed = hardware.has_distributed_shared_memory > 0.0
    matrix = {"rows": rows, "columns": columns, "word_byte": word_byte}
    traffic = {**matrix, "batch": batch, "is_weight_gradient": is_weight_gradient}

    # Tiles: what one cache of each level holds, and what all multiprocessors together hold
    l2_grid = tile_grid(**matrix, capacity_byte=l2_byte)
    own_grid = tile_grid(**matrix, capacity_byte=shared_byte)
    joint_capacity_byte = shared_byte * jnp.where(is_distributed, multiprocessors, 1.0)
    joint_grid = tile_grid(**matrix, capacity_byte=joint_capacity_byte)
    register_grid = tile_grid(**matrix, capacity_byte=register_byte)

    # Bytes that cross into each level
    hbm_byte = streamed_byte(**traffic, grid=l2_grid, capacity_byte=l2_byte)
    into_shared_byte = streamed_byte(**traffic, grid=joint_grid, capacity_byte=shared_byte * multiprocessors)
    between_shared_byte = jnp.where(is_distributed, neighbour_byte(**traffic, grid=own_grid), 0.0)
    into_register_byte = streamed_byte(**traffic, grid=register_grid, capacity_byte=register_byte * register_blocks)

    # The slowest stream decides
    sustained = hardware.sustained_fraction
    flop = padded_matmul_flop(rows=rows, columns=columns, batch=batch, quantum=physics.matmul_quantum)
    hbm_time_s = hbm_byte / hardware.hbm_byte_per_s
    l2_time_s = (hbm_byte + into_shared_byte) / hardware.l2_byte_per_s
    on_chip_byte = into_shared_byte + between_shared_byte + into_register_byte
    on_chip_time_s = on_chip_byte / (hardware.shared_memory_byte_per_s * sustained)
    arithmetic_time_s = flop / (hardware.peak_flop_per_s * sustained)
    slowest_s = jnp.maximum(jnp.maximum(hbm_time_s, l2_time_s), jnp.maximum(on_chip_time_s, arithmetic_time_s))
    return slowest_s + hardware.matmul_latency_s
