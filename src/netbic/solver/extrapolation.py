"""Extrapolation of an iteration that converges slowly on fixed supports (Anderson 1965).

On fixed supports a round is a smooth function of both vectors, and near its fixed point nearly a linear one. From a few
rounds x, x + f, ... the combination of points whose steps f nearly cancel is closer to the fixed point. It is only a
proposal: the solver goes on from there if F is larger than before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from netbic.arrays import Floats
from netbic.solver.vectors import State

_FIRST = 20  # rounds with the same supports before the first proposal: most iterations have converged by then
_ROUNDS = 7  # that are combined, and after which there is another proposal
_SMALLEST = 1e-10  # singular value of the changes of the steps that counts, relative to the largest one


class Extrapolation:
    """The last rounds of an iteration on the same supports."""

    def __init__(self) -> None:
        self._last: State | None = None
        self._states: list[State] = []
        self._wait = _FIRST

    def proposal(self, state: State) -> State | None:
        """Add the state of a round; an extrapolated one now and then, if the supports stay the same."""
        last, self._last = self._last, state
        if last is None or not (state.u.has_support_of(last.u) and state.v.has_support_of(last.v)):
            self._states, self._wait = [], _FIRST
        self._states = [*self._states[-_ROUNDS + 1 :], state]
        self._wait -= 1
        if self._wait > 0:
            return None
        self._wait = _ROUNDS
        points = np.array([np.concatenate([earlier.u.values, earlier.v.values]) for earlier in self._states])
        found = _extrapolated(points)
        if (np.sign(found) != np.sign(points[-1])).any():
            return None
        u, v = np.split(found, [state.u.values.size])
        return replace(
            state,
            u=replace(state.u, values=u / np.linalg.norm(u), smoothed=None),
            v=replace(state.v, values=v / np.linalg.norm(v), smoothed=None),
        )


def _extrapolated(points: Floats) -> Floats:
    """The affine combination of points with the shortest combined step."""
    steps = np.diff(points, axis=0)
    changes = np.diff(steps, axis=0)
    weights = np.linalg.lstsq(changes.T, steps[-1], rcond=_SMALLEST)[0]
    found: Floats = points[-1] - weights @ np.diff(points[1:], axis=0)
    return found
