"""A progress bar with rate and time left, on stderr, where a person is looking."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text


class RateColumn(ProgressColumn):
    """How many things are done in a second."""

    def render(self, task: Task) -> Text:
        """Return the rate, or nothing before there is one."""
        rate = task.finished_speed or task.speed
        return Text(f"{rate:,.0f} {task.fields['unit']}/s" if rate else "", style="progress.data.speed")


@contextmanager
def progress_bar(total: int, unit: str, *, console: Console | None = None) -> Iterator[Callable[[int], None]]:
    """Show a bar over `total` things called `unit`; yields the function to call with how many more are done.

    Where stderr is no terminal (a log file, continuous integration) nothing is drawn.
    """
    screen = console or Console(stderr=True)
    columns = (
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} {task.fields[unit]}"),
        RateColumn(),
        TextColumn("left"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=screen, disable=not screen.is_terminal) as progress:
        task = progress.add_task("", total=total, unit=unit)
        yield lambda count: progress.advance(task, count)
