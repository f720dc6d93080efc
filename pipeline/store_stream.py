"""The parts of one work unit, written row group by row group: memory does not grow with the unit."""

import contextlib
import hashlib
from collections.abc import Iterable, Mapping
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.store_check import Folder, part_name
from pipeline.store_table import arrow_table, by_partition, total_of, writer_options

GROUP_ROWS = 1 << 18
BUFFER_BYTES = 1 << 20  # Parquet writes pages of some hundred bytes; each call into Python costs as much as a page


class _Checked:
    """A file that Parquet writes into, which counts and checksums what passes."""

    closed = False

    def __init__(self, stream: IO[bytes]):
        self._stream, self.sha256, self.size = stream, hashlib.sha256(), 0
        self.is_given_up = False

    def write(self, content: bytes) -> int:
        if self.is_given_up:  # Arrow empties its buffer all the same
            return len(content)
        self.sha256.update(content)
        self._stream.write(content)
        self.size += len(content)
        return len(content)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Nothing is held back here."""

    def close(self) -> None:
        """The folder closes the file."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


class PartStream:
    """One part file that grows by row groups."""

    def __init__(self, stream: IO[bytes]):
        """Begin the part; its columns are those of the first table."""
        self._file = _Checked(stream)
        self._sink = pa.BufferedOutputStream(pa.PythonFile(self._file, "w"), BUFFER_BYTES)
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self.rows = self.candidates = 0

    def add(self, table: pa.Table) -> None:
        """Add rows; a row group is written once there are enough of them."""
        self.rows += table.num_rows
        counted = "candidate_count" in table.column_names
        self.candidates += total_of(table, "candidate_count") if counted else table.num_rows
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        if self._waiting_rows >= GROUP_ROWS:
            self._write()

    def _write(self) -> None:
        if self._writer is None:
            first = self._waiting[0]
            self._writer = pq.ParquetWriter(self._sink, first.schema, **writer_options(first))
        names = self._writer.schema.names
        for table in self._waiting:
            if missing := set(names) - set(table.column_names):
                raise KeyError(f"column {min(missing)} is missing from some rows of a work unit")
        tables = [table.select(names) for table in self._waiting]
        self._writer.write_table(pa.concat_tables(tables), row_group_size=2 * GROUP_ROWS)
        self._waiting, self._waiting_rows = [], 0

    def give_up(self) -> None:
        """Write no more: what is there of the part will be deleted."""
        self._file.is_given_up = True

    def finish(self) -> dict[str, Any]:
        """Write what is left and return what the manifest says of the part."""
        if self._waiting or self._writer is None:
            self._write()
        assert self._writer is not None
        self._writer.close()
        self._sink.flush()
        counts = {"rows": self.rows, "candidates": self.candidates, "bytes": self._file.size}
        return {**counts, "sha256": self._file.sha256.hexdigest()}


def write_parts(folder: Folder, unit: str, tables: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Write a unit's tables, one part for each chip, and return the parts by path."""
    parts: dict[str, PartStream] = {}
    with contextlib.ExitStack() as files:
        try:
            for table in tables:
                for hardware, rows in by_partition(arrow_table(table)):
                    path = part_name(hardware, unit)
                    if path not in parts:
                        parts[path] = PartStream(files.enter_context(folder.stream(path)))
                    parts[path].add(rows)
            return {path: part.finish() for path, part in parts.items()}
        except BaseException:
            for part in parts.values():
                part.give_up()
            raise
