"""Where and how a run is carried out. None of it changes a row."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pipeline.device import DEVICES
from pipeline.errors import UserError

KEYS = ("workers", "device", "runner", "shard")
RAY = "ray"
Unit = TypeVar("Unit")


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Processes, platform, scheduler, and which part of the work units is this run's."""

    workers: int = 0  # 0 = one a core, or this process alone if the job is small
    device: str = "auto"
    runner: str = "local"  # local, ray, or ray and the address of a cluster: ray://host:10001
    shard: tuple[int, int] | None = None  # (which, of how many), counted from 1

    @property
    def is_ray(self) -> bool:
        """Whether Ray schedules the units."""
        return self.runner.startswith(RAY)

    def share(self, units: Sequence[Unit]) -> list[Unit]:
        """Return the units that are this run's: every so-manieth, for an even load."""
        if self.shard is None:
            return list(units)
        which, count = self.shard
        return list(units[which - 1 :: count])


def read_execution(plain: Mapping[str, Any]) -> Execution:
    """Return checked settings; raises UserError in one line."""
    workers = plain.get("workers") or 0
    if isinstance(workers, bool) or not isinstance(workers, int) or not 0 <= workers <= 4096:
        raise UserError(
            f"config.yaml: workers = {workers!r}: must be a whole number from 1 to 4096; or null, one a core"
        )
    chosen = str(plain.get("device") or "auto")
    if chosen not in DEVICES:
        raise UserError(f"config.yaml: device = {chosen}: must be one of {', '.join(DEVICES)}; choose one")
    runner = str(plain.get("runner") or "local")
    if runner not in ("local", RAY) and not runner.startswith("ray://"):
        raise UserError(f"config.yaml: runner = {runner}: must be local, ray or ray://host:port; choose one")
    return Execution(workers=workers, device=chosen, runner=runner, shard=_shard(plain.get("shard")))


def _shard(value: object) -> tuple[int, int] | None:
    if value is None:
        return None
    match = re.fullmatch(r"(\d+)/(\d+)", str(value))
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UserError(f"config.yaml: shard = {value}: must be i/N with i from 1 to N; as in shard=1/4")
    return int(match[1]), int(match[2])
