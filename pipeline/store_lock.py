"""One run at a time in a results folder, by a lock that dies with its process."""

import contextlib
import json
import os
import socket
import threading
import time
from pathlib import Path

from pipeline.errors import UserError
from pipeline.store_files import LocalFolder, RemoteFolder, said_in_one_line

LOCK = ".lock"
RECORD_LIFE_S = 600.0  # a lock record that nobody has renewed for so long is a dead run's
RENEW_S = 60.0
_held_here: set[str] = set()


def _process_start(pid: int) -> str:
    """Return a text that tells this process from a later one of the same number, empty where the system has none."""
    with contextlib.suppress(OSError, IndexError):
        start_ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}/{start_ticks}"
    return ""


def _owner() -> dict[str, object]:
    pid = os.getpid()
    return {"pid": pid, "host": socket.gethostname(), "process_start": _process_start(pid), "unix_s": time.time()}


def _is_alive(owner: dict[str, object]) -> bool:
    """Return whether a lock's owner may still run. On another host nobody can tell, so its last renewal decides."""
    if time.time() - float(str(owner.get("unix_s", 0))) > RECORD_LIFE_S:
        return False
    if owner.get("host") != socket.gethostname():
        return True
    pid = int(str(owner.get("pid", 0)))
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    started = _process_start(pid)
    return not started or not owner.get("process_start") or started == owner["process_start"]


def _refuse(url: str, owner: dict[str, object], remedy: str) -> UserError:
    who = f"process {owner.get('pid', '?')} on {owner.get('host', '?')}"
    return UserError(f"{url}: another run ({who}) is writing into this folder; {remedy}")


class FolderLock:
    """Holds a results folder for one process. Released by `release`, or by the death of the process."""

    def __init__(self, folder: LocalFolder | RemoteFolder, name: str = LOCK):
        """Take the lock or refuse in one line. Shards of one run each have a lock of another name."""
        self._folder, self._name = folder, name
        self._handle: int | None = None
        self._released: threading.Event | None = None
        if isinstance(folder, LocalFolder) and self._take_by_kernel(folder):
            return
        self._take_by_record()

    @property
    def _key(self) -> str:
        return f"{self._folder.url}/{self._name}"

    def _take_by_kernel(self, folder: LocalFolder) -> bool:
        """Lock a file through the kernel, which drops it when the process dies. False where that is not to be had."""
        try:
            import fcntl
        except ImportError:
            return False
        with said_in_one_line(folder.url, "taking the lock"):
            folder.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder.path / self._name, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = json.loads(os.read(handle, 4096) or b"{}")
            os.close(handle)
            raise _refuse(folder.url, owner, "wait for it, or choose another with results=FOLDER") from error
        except OSError:
            os.close(handle)
            return False
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps(_owner()).encode())
        self._handle = handle
        return True

    def _take_by_record(self) -> None:
        """Leave a record of who writes, and renew it: for filesystems that have no locks."""
        content = self._folder.read(self._name)
        owner = json.loads(content) if content else None
        is_own_rest = owner and owner.get("pid") == os.getpid() and self._key not in _held_here
        if owner and not is_own_rest and _is_alive(owner):
            raise _refuse(self._folder.url, owner, f"wait for it, or, if it is dead, delete {self._name} there")
        self._write_record()
        _held_here.add(self._key)
        self._released = threading.Event()
        threading.Thread(target=self._renew, args=(self._released,), daemon=True).start()

    def _write_record(self) -> None:
        self._folder.write(self._name, json.dumps(_owner()).encode())

    def _renew(self, released: threading.Event) -> None:
        while not released.wait(RENEW_S):
            with contextlib.suppress(UserError):  # a failed renewal is tried again; a failed part is said
                self._write_record()

    def release(self) -> None:
        """Give the folder free. The file of a kernel lock stays, lest two runs lock two files of one name."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, 0)
                os.close(self._handle)
            self._handle = None
        if self._released is not None:
            self._released.set()
            self._released = None
            _held_here.discard(self._key)
            self._folder.delete(self._name)
