"""Writes the parts of work units: what each worker of a run has of its results folder."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.store_check import part_name, record_name
from pipeline.store_files import open_folder
from pipeline.store_manifest import canonical_json, sha256

Unit = range | int | str


def unit_name(unit: Unit) -> str:
    """Return the name of a work unit: its index range, so that names sort as the rows do."""
    if isinstance(unit, range):
        return f"{unit.start:012d}-{unit.stop:012d}"
    return f"{unit:012d}" if isinstance(unit, int) else unit


@dataclass(frozen=True)
class PartWriter:
    """Writes the parts of work units. Small and picklable: each worker process has its own."""

    url: str
    identity_sha256: str

    def write_unit(self, unit: Unit, table: Mapping[str, Any]) -> int:
        """Write a unit's rows, one file for each chip, then its record; return the number of rows."""
        from pipeline.store_table import arrow_table, by_partition, parquet_bytes, total_of

        folder, name = open_folder(self.url), unit_name(unit)
        parts = {}
        for hardware, rows in by_partition(arrow_table(table)):
            content = parquet_bytes(rows)
            path = part_name(hardware, name)
            folder.write(path, memoryview(content))
            counts = {"rows": rows.num_rows, "candidates": total_of(rows, "candidate_count"), "bytes": content.size}
            parts[path] = {**counts, "sha256": sha256(memoryview(content))}
        record = {"identity_sha256": self.identity_sha256, "unit": name, "parts": parts}
        folder.write(record_name(name), canonical_json(record).encode())
        return sum(part["rows"] for part in parts.values())

    def write_tables(self, unit: Unit, tables: Iterable[Mapping[str, Any]]) -> int:
        """Write a unit's rows piece by piece, then its record; return the number of rows."""
        from pipeline.store_stream import write_parts

        folder, name = open_folder(self.url), unit_name(unit)
        parts = write_parts(folder, name, tables)
        record = {"identity_sha256": self.identity_sha256, "unit": name, "parts": parts}
        folder.write(record_name(name), canonical_json(record).encode())
        return sum(part["rows"] for part in parts.values())
