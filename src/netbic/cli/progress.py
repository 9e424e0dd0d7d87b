"""Progress of a command: the stage, the share that is done, and about how much time is left.

On a terminal this is a bar, otherwise a line now and then (on standard error in both cases).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from time import monotonic
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import click

_TICK = 0.25  # seconds between updates of what is shown
_FIRST, _GAP, _LONGEST = 2.5, 5.0, 60.0  # seconds until the first line, and between lines: at least, at most
_SHARE = 0.05  # of the work, between lines
_KNOWN_AFTER = 2.0  # expected seconds after which the time that was measured counts as much as what was expected
_ALMOST = 0.9  # share of a step that counts as done, at most, before it is
_WIDE = 1.5  # how many times longer than expected the rest must be able to take to be mentioned


@dataclass(frozen=True)
class Stage:
    """A part of a command, which consists of steps that take about the same time.

    Parameters
    ----------
    name : str
        What the user reads.
    seconds : float
        Expected time of a step; for steps that run at the same time, that of all divided by their number.
    steps : float
        Expected number of steps.
    most : float
        Largest possible number of steps, if their number is not known before.
    parallel : int
        Number of steps that run at the same time.
    startup : float
        Expected time before the first steps, for example until other processes have started; it does not count as
        time of the steps. A stage without steps (`seconds` is 0) tells nothing about the pace of others.
    measured : bool
        Whether steps are seconds of work, which was measured where it was done or is expected from such measurements:
        then the pace is known.
    first : float
        Share of such a stage that is done when it is first reported, if that is known; as long as nothing is reported,
        this says how long the stage takes at least.
    """

    name: str
    seconds: float
    steps: float = 1
    most: float = 0
    parallel: int = 1
    startup: float = 0.0
    measured: bool = False
    first: float = 0.0


class Left(NamedTuple):
    """Seconds that are left, as expected and at most, and the share of the time that has passed."""

    expected: float
    most: float
    share: float

    def __str__(self) -> str:
        wide = self.most > _WIDE * self.expected + _GAP
        return f"about {in_words(self.expected)} left" + (f" (at most {in_words(self.most)})" if wide else "")


def in_words(seconds: float) -> str:
    """A duration, as precise as an estimate can be.

    Examples
    --------
    >>> [in_words(seconds) for seconds in (2, 14, 47, 80, 500, 9000)]
    ['5 seconds', '15 seconds', '50 seconds', '80 seconds', '8 minutes', '2.5 hours']
    """
    if seconds < 20:
        return f"{max(5, 5 * round(seconds / 5))} seconds"
    if seconds < 120:
        return f"{10 * round(seconds / 10)} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


class Schedule:
    """Stages one after another, and the time that is left.

    Every stage has an expected time, which depends on the size of the data (`durations.py`). The pace is the
    time spent so far relative to what was expected for it; in the beginning it is close to 1. The rest of the current
    stage is expected to take as long as its own steps took so far, later stages as long as expected, times the pace.
    Steps in progress count as far as their expected time has passed.

    Parameters
    ----------
    stages : dict of Stage
        In their order.
    clock : function
        Returns the time in seconds.

    Examples
    --------
    >>> now = [0.0]
    >>> schedule = Schedule({"one": Stage("first", 2.0, 10), "two": Stage("second", 5.0)}, lambda: now[0])
    >>> schedule.update("one", 0, 10)
    >>> schedule.left().expected
    25.0
    >>> now[0] = 20.0
    >>> schedule.update("one", 5, 10)  # it takes twice as long as expected
    >>> round(schedule.left().expected)
    29
    """

    def __init__(self, stages: Mapping[str, Stage], clock: Callable[[], float] = monotonic) -> None:
        self._stages, self._clock, self._start = dict(stages), clock, clock()
        self._spent = self._expected = 0.0  # in finished stages, and what was expected for the steps done in them
        self._share = 0.0  # largest so far: it does not decrease
        self._key, self._stage, self._begun, self._pace = "", Stage("starting", 0.0), clock(), 1.0
        self._reported = self._entered = clock()
        self._reached = 0  # stages that have begun; one of them may begin again
        self._done = self._before = 0.0  # steps of the current stage, and those of them that were done before

    @property
    def name(self) -> str:
        """The current stage."""
        return self._stage.name

    def update(self, key: str, done: float, total: float) -> None:
        """A number of steps of a stage are done; `total` is the number of its steps, as far as it is known.

        Steps that are done when a stage begins are those of an earlier run. A stage may end before all are done.
        """
        if key != self._key or done < self._done:
            self._begin(key, done)
        before, self._done, self._reported = self._stage, done, self._clock()
        # Fewer steps than expected are known in the beginning, e.g. those of a first comparison.
        known = done >= total or before.measured
        steps = total if known else max(total, before.steps)
        self._stage = replace(before, steps=steps, most=steps if before.measured else max(before.most, steps))

    def _begin(self, key: str, done: float) -> None:
        now, own = self._clock(), self._stage
        if own.seconds and not own.measured:
            self._spent += max(0.0, now - self._begun)
            self._expected += own.seconds * (self._done - self._before if self._done else own.steps)
        self._pace = _blended(1.0, self._spent, self._expected)
        self._stage = self._stages.get(key, Stage(key, 0.0))
        self._key, self._entered, self._begun, self._before = key, now, now + self._stage.startup, done
        if key in self._later():
            self._reached = 1 + list(self._stages).index(key)

    def expect(self, stages: Mapping[str, Stage]) -> None:
        """Replace what is expected of stages that have not begun."""
        self._stages |= {key: stages[key] for key in self._later() if key in stages}

    def _later(self) -> list[str]:
        return list(self._stages)[self._reached :]

    def left(self) -> Left:
        """The time that is left."""
        now, own = self._clock(), self._stage
        if own.first and not self._done:
            own = replace(own, steps=max(own.steps, (now - self._entered) / own.first))
        elapsed, done = max(0.0, now - self._begun), self._done - self._before
        since = max(0.0, now - max(self._begun, self._reported))
        in_progress = own.steps - self._before - done
        if own.measured:
            pace, step = self._pace, own.seconds
            done += min(since / step, _ALMOST * in_progress)
        else:
            done += min(since / max(self._pace * own.seconds, 1e-9), _ALMOST * min(own.parallel, in_progress))
            pace = _blended(1.0, self._spent + elapsed * (own.seconds > 0), self._expected + own.seconds * done)
            step = own.seconds * _blended(pace, elapsed, own.seconds * done)
        later = [self._stages[key] for key in self._later()]
        rest = step * (own.steps - self._before - done)
        rest += max(0.0, self._begun - now)
        expected = rest + pace * sum(stage.startup + stage.seconds * stage.steps for stage in later)
        most = rest + step * max(0.0, own.most - own.steps)
        most += pace * sum(stage.startup + stage.seconds * max(stage.steps, stage.most) for stage in later)
        passed = now - self._start
        self._share = max(self._share, min(passed / max(passed + expected, 1e-9), 0.99))
        return Left(expected, most, self._share)


def _blended(before: float, spent: float, expected: float) -> float:
    """Time per expected time, given what it was thought to be before."""
    return (_KNOWN_AFTER * before + spent) / (_KNOWN_AFTER + expected)


class Display(Protocol):
    """Shows the state of a schedule; called several times a second."""

    def show(self, name: str, left: Left) -> None:
        """Show the stage and the time that is left."""


class Lines:
    """Lines, for output that is not a terminal: the first after a few seconds, then one every few per cent."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._printed, self._share, self._gap = clock, clock(), -1.0, _FIRST

    def show(self, name: str, left: Left) -> None:
        """Print a line, if it is time for one."""
        passed = self._clock() - self._printed
        if passed < self._gap or (left.share < self._share + _SHARE and passed < _LONGEST):
            return
        self._printed, self._share, self._gap = self._clock(), left.share, _GAP
        click.echo(f"{name}: {left.share:.0%} done, {left}", err=True)


class Bar:
    """A progress bar on a terminal."""

    def __init__(self, opened: ExitStack) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        texts = [TextColumn(text) for text in ("{task.description}", "{task.percentage:.0f}%", "{task.fields[left]}")]
        columns = (texts[0], BarColumn(), *texts[1:])
        redirected = sys.stdout.isatty()  # otherwise lines belong to a file or pipe
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=redirected)
        opened.enter_context(self._progress)
        self._task = self._progress.add_task("starting", total=1.0, left="")

    def show(self, name: str, left: Left) -> None:
        """Update the bar."""
        self._progress.update(self._task, description=name, completed=left.share, left=str(left))


class Progress:
    """Shows the progress of a command while it runs; a context manager.

    Parameters
    ----------
    stages : dict of Stage
        In their order.
    silent : bool
        Show nothing.
    """

    def __init__(self, stages: Mapping[str, Stage], silent: bool = False) -> None:
        self._schedule, self._lock, self._silent = Schedule(stages), threading.Lock(), silent
        self._stopped, self._opened = threading.Event(), ExitStack()

    def update(self, key: str, done: float, total: float) -> None:
        """See `Schedule.update`."""
        with self._lock:
            self._schedule.update(key, done, total)

    def expect(self, stages: Mapping[str, Stage]) -> None:
        """See `Schedule.expect`."""
        with self._lock:
            self._schedule.expect(stages)

    def __enter__(self) -> Self:
        if not self._silent:
            display: Display = Bar(self._opened) if sys.stderr.isatty() else Lines()
            thread = threading.Thread(target=self._show, args=(display,), daemon=True)
            self._opened.callback(thread.join)
            self._opened.callback(self._stopped.set)
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._opened.close()

    def _show(self, display: Display) -> None:
        while not self._stopped.wait(_TICK):
            with self._lock:
                name, left = self._schedule.name, self._schedule.left()
            display.show(name, left)
