"""Results folders: round trip, same bytes, resume, refusals, locks, and death at any moment."""

import errno
import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.fs as arrow_fs
import pyarrow.parquet as pq
import pytest

from pipeline import store_files
from pipeline.columns import GLOSSARY
from pipeline.errors import UserError
from pipeline.query import ask, connect
from pipeline.query_files import read_query
from pipeline.store import open_results, unit_name
from pipeline.store_check import part_name
from pipeline.store_files import LocalFolder, open_folder
from pipeline.store_lock import LOCK, FolderLock
from pipeline.store_table import arrow_table, by_partition, parquet_bytes

ROOT = Path(__file__).parent.parent.parent


def write_all(folder: Path, study, units, make_table, **how):
    with open_results(str(folder), study, units, **how) as results:
        for unit in units:
            if not results.is_finished(unit):
                results.write_unit(unit, make_table(unit))
        return results.finish()


def part_bytes(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.parquet")}


def test_round_trip_keeps_every_value_unit_and_meaning(tmp_path, study, units, make_table):
    manifest = write_all(tmp_path, study, units, make_table)
    assert manifest["row_count"] == 16
    expected = make_table(range(6, 12))
    part = pq.ParquetFile(tmp_path / part_name("new_chip", unit_name(range(6, 12)))).read()
    assert part.num_rows == 4
    for name in part.column_names:
        field, values = part.schema.field(name), part[name].to_pylist()
        assert field.metadata[b"unit"].decode() == GLOSSARY[name].unit
        assert field.metadata[b"meaning"].decode() == GLOSSARY[name].meaning
        for stored, given in zip(values, expected[name][2:], strict=True):
            assert stored == given or (stored is None and np.isnan(given))


def test_floats_are_plain_axes_are_encoded_and_only_keys_have_statistics(tmp_path, study, units, make_table):
    write_all(tmp_path, study, units, make_table)
    group = pq.ParquetFile(tmp_path / part_name("old_chip", unit_name(units[0]))).metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert "RLE_DICTIONARY" not in columns["step_time_s"].encodings
    assert "RLE_DICTIONARY" in columns["model"].encodings
    assert columns["training_flop"].is_stats_set
    assert not columns["step_time_s"].is_stats_set


def test_what_every_row_has_is_required_and_degrees_are_narrow(make_table):
    schema = arrow_table(make_table(range(0, 6))).schema
    assert not schema.field("training_flop").nullable and not schema.field("data_ranks").nullable
    assert schema.field("step_time_s").nullable and schema.field("purchase_usd").nullable
    assert schema.field("data_ranks").type == "int32" and schema.field("d_model").type == "int64"


@pytest.mark.parametrize(("name", "value"), [("data_ranks", 2.0**31), ("data_ranks", 1.5), ("training_flop", np.nan)])
def test_a_number_that_its_column_does_not_hold_is_refused(make_table, name, value):
    table = make_table(range(0, 6))
    table[name] = np.full(len(table[name]), value)
    with pytest.raises(ValueError, match="truncated|missing values"):
        arrow_table(table)


def test_manifest_states_origin_and_checksums(tmp_path, study, units, make_table):
    manifest = write_all(tmp_path, study, units, make_table)
    assert manifest == json.loads((tmp_path / "manifest.json").read_text())
    for path, part in manifest["parts"].items():
        assert part["sha256"] == hashlib.sha256((tmp_path / path).read_bytes()).hexdigest()
    assert {"git_commit", "git_dirty", "versions", "seconds", "config", "catalogue_sha256"} <= set(manifest)
    assert manifest["is_complete"] and manifest["scenario_count"] == 16
    assert manifest["candidate_count"] == 160
    begins, ends = (tmp_path / "run.log").read_text().splitlines()
    assert "begins: 3 work units, 0 of them finished before" in begins and "ends: 16 rows in 4 parts" in ends
    assert sum(row["kind"] == "assumption" for row in manifest["catalogue"]) == 2
    assert not list(tmp_path.rglob("*.tmp")) and not (tmp_path / "points/_finished").exists()


def test_order_of_writing_does_not_change_a_byte(tmp_path, study, units, make_table):
    write_all(tmp_path / "a", study, units, make_table)
    with open_results(str(tmp_path / "b"), study, units) as results:
        for unit in reversed(units):
            results.writer.write_unit(unit, make_table(unit))
        results.finish()
    assert part_bytes(tmp_path / "a") == part_bytes(tmp_path / "b")


def test_resume_skips_finished_units_and_ends_with_the_same_bytes(tmp_path, study, units, make_table):
    write_all(tmp_path / "whole", study, units, make_table)
    broken = tmp_path / "broken"
    with open_results(str(broken), study, units) as results:
        results.write_unit(units[1], make_table(units[1]))
    with open_results(str(broken), study, units, resume=True) as results:
        assert [results.is_finished(unit) for unit in units] == [False, True, False]
    manifest = write_all(broken, study, units, make_table, resume=True)
    assert part_bytes(tmp_path / "whole") == part_bytes(broken)
    assert manifest["resumed_count"] == 2
    with open_results(str(broken), study, units, resume=True) as results:
        assert all(results.is_finished(unit) for unit in units)


def test_a_part_without_a_record_is_a_dead_runs_rest_and_is_written_again(tmp_path, study, units, make_table):
    with open_results(str(tmp_path), study, units) as results:
        results.write_unit(units[0], make_table(units[0]))
    (tmp_path / f"points/_finished/{unit_name(units[0])}.json").unlink()
    (tmp_path / "points/hardware=old_chip/.part-x.parquet.1-2.tmp").write_bytes(b"half")
    write_all(tmp_path, study, units, make_table, resume=True)
    assert not list(tmp_path.rglob("*.tmp"))


def test_changed_configuration_is_refused_saying_what_changed(tmp_path, study, units, make_table):
    with open_results(str(tmp_path), study, units) as results:
        results.write_unit(units[0], make_table(units[0]))
    study["config"]["hardware"]["new_chip"]["hbm_byte"] = 9e10
    with pytest.raises(UserError, match=r"resume=true.*hardware.new_chip.hbm_byte: 80000000000.0 -> 90000000000.0"):
        open_results(str(tmp_path), study, units, resume=True)
    with pytest.raises(UserError, match=r"another configuration.*replace=true"):
        open_results(str(tmp_path), study, units)
    assert write_all(tmp_path, study, units, make_table, replace=True)["row_count"] == 16


def test_where_and_how_to_run_is_not_part_of_the_configuration(tmp_path, study, units, make_table):
    study["config"]["resume"] = False
    with open_results(str(tmp_path), study, units):
        pass
    study["config"]["resume"] = True
    write_all(tmp_path, study, units, make_table, resume=True)


def test_same_configuration_again_replaces_silently(tmp_path, study, units, make_table):
    write_all(tmp_path, study, units, make_table)
    before = part_bytes(tmp_path)
    write_all(tmp_path, study, units, make_table)
    assert part_bytes(tmp_path) == before


@pytest.mark.parametrize("name", ["points/hardware=old_chip/notes.txt", "points/hardware=old_chip/part-7.parquet"])
def test_a_strangers_file_is_refused_by_name(tmp_path, study, units, make_table, name):
    with open_results(str(tmp_path), study, units) as results:
        results.write_unit(units[0], make_table(units[0]))
    (tmp_path / name).write_bytes(b"not ours")
    for resume in (True, False):
        with pytest.raises(UserError, match=name):
            open_results(str(tmp_path), study, units, resume=resume, replace=not resume)
    assert (tmp_path / name).read_bytes() == b"not ours"


def test_a_torn_or_missing_part_is_refused_by_name(tmp_path, study, units, make_table):
    write_all(tmp_path, study, units, make_table)
    part = tmp_path / part_name("old_chip", unit_name(units[0]))
    part.write_bytes(part.read_bytes()[:-100])
    with pytest.raises(UserError, match=rf"{part.name}: is torn"):
        open_results(str(tmp_path), study, units, resume=True)
    part.unlink()
    with pytest.raises(UserError, match=rf"{part.name}: is missing"):
        open_results(str(tmp_path), study, units, resume=True)


def test_finish_refuses_a_hole(tmp_path, study, units, make_table):
    with open_results(str(tmp_path), study, units) as results:
        results.write_unit(units[0], make_table(units[0]))
        with pytest.raises(UserError, match="2 of 3 work units are not written"):
            results.finish()


def test_two_runs_into_one_folder_the_second_is_refused(tmp_path, study, units):
    with open_results(str(tmp_path), study, units):
        with pytest.raises(UserError, match=rf"another run \(process {os.getpid()} "):
            open_results(str(tmp_path), study, units)
    open_results(str(tmp_path), study, units).close()


@pytest.fixture
def no_kernel_locks(monkeypatch):
    monkeypatch.setattr(FolderLock, "_take_by_kernel", lambda self, folder: False)


def test_without_kernel_locks_a_record_holds_the_folder(tmp_path, study, units, no_kernel_locks):
    with open_results(str(tmp_path), study, units):
        with pytest.raises(UserError, match="another run"):
            open_results(str(tmp_path), study, units)
    assert not (tmp_path / LOCK).exists()


@pytest.mark.parametrize(
    ("owner", "is_refused"),
    [
        ({"pid": os.getppid(), "host": socket.gethostname(), "age_s": 0.0}, True),
        ({"pid": os.getppid(), "host": socket.gethostname(), "age_s": 0.0, "process_start": "another boot/1"}, False),
        ({"pid": 2**22 + 1, "host": socket.gethostname(), "age_s": 0.0}, False),
        ({"pid": os.getpid(), "host": socket.gethostname(), "age_s": 0.0}, False),
        ({"pid": 1, "host": "elsewhere", "age_s": 30.0}, True),
        ({"pid": 1, "host": "elsewhere", "age_s": 3600.0}, False),
    ],
    ids=["alive", "number reused", "dead", "own rest", "elsewhere, renewed", "elsewhere, silent"],
)
def test_a_dead_runs_record_does_not_hold_for_ever(tmp_path, no_kernel_locks, owner, is_refused):
    record = {**owner, "unix_s": time.time() - owner["age_s"]}
    (tmp_path / LOCK).write_text(json.dumps(record))
    if is_refused:
        with pytest.raises(UserError, match="delete .lock there"):
            FolderLock(LocalFolder(tmp_path))
    else:
        FolderLock(LocalFolder(tmp_path)).release()


def test_a_remote_destination_holds_the_same_bytes_and_answers_questions(
    tmp_path, study, units, make_table, monkeypatch
):
    """Everything but the wire: Arrow's filesystem interface over a local folder stands in for an object store."""
    remote = tmp_path / "bucket" / "run"
    monkeypatch.setattr(store_files, "filesystem_of", lambda url: (arrow_fs.LocalFileSystem(), str(remote)))
    url = "s3://bucket/run"
    with open_results(url, study, units) as results:
        results.write_unit(units[0], make_table(units[0]))
        with pytest.raises(UserError, match="s3://bucket/run: another run"):
            open_results(url, study, units)
    with open_results(url, study, units, resume=True) as results:
        assert results.is_finished(units[0])
        for unit in units[1:]:
            results.writer.write_unit(unit, make_table(unit))
        results.finish()
    write_all(tmp_path / "local", study, units, make_table)
    assert part_bytes(remote) == part_bytes(tmp_path / "local")
    for name in ("headline", "assumed_inputs"):
        local, far = connect(str(tmp_path / "local")), connect(url)
        assert ask(far, read_query(name)) == ask(local, read_query(name))


@pytest.mark.parametrize(
    ("number", "said"), [(errno.ENOSPC, "disk is full"), (errno.EACCES, "not allowed to write"), (errno.EIO, "failed")]
)
def test_the_systems_refusals_are_one_line(tmp_path, study, units, make_table, monkeypatch, number, said):
    with open_results(str(tmp_path), study, units) as results:

        def refuse(handle: int) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(UserError, match=said) as caught:
            results.write_unit(units[0], make_table(units[0]))
        monkeypatch.undo()
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.rglob("*.parquet")) and not list(tmp_path.rglob("*.tmp"))


def test_a_file_where_the_folder_should_be(tmp_path, study, units):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(UserError, match="a file stands where a folder is needed"):
        open_results(str(tmp_path / "taken"), study, units)


def test_a_url_that_nobody_knows_is_one_line():
    with pytest.raises(UserError, match="nowhere://"):
        open_folder("nowhere://bucket/x")


def test_a_column_without_glossary_entry_is_refused():
    with pytest.raises(KeyError, match="describe it in pipeline/columns.py"):
        arrow_table({"mystery": np.zeros(1)})


def test_parts_split_by_chip_in_order(make_table):
    parts = dict(by_partition(arrow_table(make_table(range(6, 12)))))
    assert {chip: table["scenario_id"].to_pylist() for chip, table in parts.items()} == {
        "new_chip": [8, 9, 10, 11],
        "old_chip": [6, 7],
    }
    assert parquet_bytes(parts["new_chip"]) == parquet_bytes(parts["new_chip"])


RUN = """
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("made_up", {conftest!r})
made_up = importlib.util.module_from_spec(spec); spec.loader.exec_module(made_up)
units = [range(i, i + 1) for i in range(16)]
from pipeline.query import ask, connect
from pipeline.query_files import read_query
from pipeline.store import open_results
with open_results({folder!r}, made_up.STUDY, units, resume=True) as results:
    print("begun", flush=True)
    for unit in units:
        if not results.is_finished(unit):
            results.write_unit(unit, made_up.unit_table(unit))
            time.sleep(0.002)
    results.finish()
"""


def test_kill_at_random_moments_then_resume_gives_the_same_bytes(tmp_path, study, make_table):
    """The many-kills version of this is the engine's; here a handful guards the store itself."""
    write_all(tmp_path / "whole", study, [range(i, i + 1) for i in range(16)], make_table)
    folder = tmp_path / "killed"
    code = RUN.format(conftest=str(Path(__file__).with_name("conftest.py")), folder=str(folder))
    moments = random.Random(20240101)
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(moments.uniform(0.0, 0.06))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
    assert part_bytes(folder) == part_bytes(tmp_path / "whole")
    assert json.loads((folder / "manifest.json").read_text())["is_complete"]
