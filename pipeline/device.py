"""Where the arithmetic runs: one core, all of them or a GPU. Settled before JAX is loaded, for it reads it once."""

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import UserError

DEVICES = ("auto", "cpu", "gpu")
CACHE_VARIABLE = "FLOPSCAPE_CACHE"
SINGLE_THREAD_FLAGS = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
SINGLE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "NPROC": "1",
}
MALLOC_TRIM_THRESHOLD, MALLOC_MMAP_THRESHOLD = -1, -3  # glibc's mallopt
KEPT_BYTE = 1 << 30
MADV_HUGEPAGE = 14  # Linux's madvise
PAGE_BYTE = 1 << 21
LARGE_PAGES_BYTE = 1 << 28  # about what a worker holds of its rows
GARBAGE_OBJECTS = 50_000
"""Objects made between two looks for unreachable cycles (Python's own: 700). Imports, composing and tracing make
hundreds of thousands that stay; looking through them again and again took a tenth of a start. A search makes no cycles.
"""


def has_gpu() -> bool:
    """Return whether the machine shows an NVIDIA or AMD GPU."""
    return any(Path(each).exists() for each in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd"))


def cache_directory() -> Path:
    """Return where compiled kernels are kept from run to run."""
    base = os.environ.get(CACHE_VARIABLE) or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "flopscape" / "kernels"


def prepare(device: str = "auto") -> None:
    """Choose the platform and switch on the cache of compiled kernels. Call it before anything imports JAX."""
    gc.set_threshold(GARBAGE_OBJECTS, *gc.get_threshold()[1:])
    if device == "cpu" or (device == "auto" and not has_gpu()):
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_directory()))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    if device == "cpu" and "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_platforms", "cpu")


def settled(device: str) -> str:
    """Return the platform that computes: cpu or gpu. Refuses a GPU that is asked for and not there."""
    import jax

    try:
        platform = jax.default_backend()
    except RuntimeError as error:
        raise UserError(
            f"config.yaml: device = {device}: {' '.join(str(error).split())[:200]}; choose device=cpu"
        ) from error
    if device == "gpu" and platform == "cpu":
        raise UserError(
            "config.yaml: device = gpu: JAX finds no GPU here; install jax[cuda13] on a machine with one, "
            "or choose device=auto"
        )
    return "cpu" if platform == "cpu" else "gpu"


def available_cores() -> list[int]:
    """Return the cores that this process may use."""
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:
        return list(range(os.cpu_count() or 1))


@contextlib.contextmanager
def all_cores() -> Iterator[None]:
    """Let this process, and those that it starts, use every core for a while, where the system tells them apart."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def single_thread_environment() -> dict[str, str]:
    """Return the environment of a process that keeps to one core."""
    flags = " ".join(filter(None, [os.environ.get("XLA_FLAGS", ""), SINGLE_THREAD_FLAGS]))
    return {**SINGLE_THREAD, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}


def keep_memory() -> None:
    """Have the C library keep freed memory, in large pages where the system has them.

    Most of the cost of large arrays is the system's handing out of pages, and looking up where small ones lie.
    """
    import ctypes

    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(MALLOC_MMAP_THRESHOLD, KEPT_BYTE)
        libc.mallopt(MALLOC_TRIM_THRESHOLD, KEPT_BYTE)
        libc.malloc.restype = ctypes.c_void_p
        libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
        libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    except (OSError, AttributeError):  # another C library: slower, no different
        return
    if room := libc.malloc(LARGE_PAGES_BYTE):  # addresses: nothing is taken until it is written to
        first = -(-room // PAGE_BYTE) * PAGE_BYTE
        libc.madvise(first, room + LARGE_PAGES_BYTE - first, MADV_HUGEPAGE)
        libc.free(room)
