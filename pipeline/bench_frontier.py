"""How long the exact frontier of many rows takes: the packaged question over a Parquet file of made-up runs."""

import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.query import ask
from pipeline.query_files import read_query
from pipeline.store_table import COMPRESSION

ROW_COUNT = 10_000_000
THREADS = 2
BLOCK = 500_000  # rows made and written at a time: bounds the memory
SEED = 20241102


def made_up_points(rows: int, first: int, generator: np.random.Generator) -> pa.Table:
    """Return runs on made-up chips: more accelerators are faster and dearer, chips and layouts differ in efficiency."""
    count = 2.0 ** generator.integers(8, 22, rows)
    loss = np.exp(generator.normal(0.0, 0.3, rows)) * (1.0 + count / 2**20)
    price = 10_000.0 * np.exp(generator.normal(0.0, 0.7, rows))
    power = 1000.0 * np.exp(generator.normal(0.0, 0.3, rows))
    run_time = 2.1e25 / (4e14 * count) * loss
    energy = count * power * run_time
    words = {"model": "dense", "physics": "epoch2024", "variant": "as_is", "price_date": "release"}
    words |= {"hardware": "made_up", "topology": "vendor", "precision": "bf16"}
    numbers = {
        "scenario_id": np.arange(first, first + rows, dtype=np.uint64),
        "training_flop": np.full(rows, 2.1e25),
        "accelerator_count": count.astype(np.int64),
        "model_flop_utilisation_fraction": 0.4 / loss,
        "run_time_s": run_time,
        "purchase_usd": count * price,
        "total_usd": count * price * run_time / 1.2e8 + energy * 2e-8,
        "energy_j": energy,
        "is_feasible": np.ones(rows, dtype=bool),
    }
    index = pa.array(np.zeros(rows, dtype=np.int32))
    texts = {name: pa.DictionaryArray.from_arrays(index, [value]) for name, value in words.items()}
    return pa.table({**numbers, **texts})


def write_points(path: Path, rows: int) -> None:
    """Write made-up runs as one Parquet file, compressed and encoded as a sweep does."""
    generator = np.random.default_rng(SEED)
    writer = None
    for first in range(0, rows, BLOCK):
        table = made_up_points(min(BLOCK, rows - first), first, generator)
        if writer is None:
            texts = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
            options: dict[str, Any] = {"use_dictionary": texts}  # pyarrow's stubs take no lists, pyarrow does
            writer = pq.ParquetWriter(path, table.schema, compression=COMPRESSION, **options)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def frontier_benchmark(rows: int = ROW_COUNT, repeats: int = 3) -> float:
    """Return the seconds, best of the repeats, of the exact frontier of time, cost and energy over so many rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.parquet"
        write_points(path, rows)
        with duckdb.connect() as connection:
            connection.execute(f"set threads = {THREADS}")
            connection.execute("set enable_progress_bar = false")
            connection.execute(f"create view points as select * from read_parquet('{path}')")
            seconds = []
            for _ in range(repeats):
                started = time.perf_counter()
                ask(connection, read_query("frontier"))
                seconds.append(time.perf_counter() - started)
    return min(seconds)
