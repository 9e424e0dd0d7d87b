"""Members of an axis whose scores are centred: groups with free locations instead of others at zero.

If every column of X has mean zero, so has z = Xv: a group of 30 % of the rows at +7 leaves the others at -3. A mixture
in which the others are at zero takes most rows for members then, and none if the groups are of equal size.
"""

from __future__ import annotations

import numpy as np

from netbic.arrays import Floats, Indices
from netbic.penalties.choice import Choice
from netbic.penalties.mixture import fit_mixture
from netbic.penalties.score_groups import ScoreGroups, score_groups

_PARAMETERS = 4  # of the mixture with others at zero: m, g, t and pi


def located_choice(scores: Floats) -> Choice | None:
    """The members of clear groups with free locations; None if there are no groups, or if the others are at zero.

    Members are all groups but the bulk (see `score_groups`); of two groups of similar size, the smaller one. Groups
    with free locations have to describe the scores better, by BIC, than members at +-m and others at zero do. Between
    members above and members below, the others have to be off zero by at least their standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> scores = generator.standard_normal(200) + 10 * (np.arange(200) < 60)
    >>> located_choice(scores - scores.mean()).support.size
    60
    >>> members = generator.choice([-10.0, 10.0], 60)
    >>> located_choice(generator.standard_normal(200) + np.append(members, np.zeros(140))) is None
    True
    """
    found = score_groups(scores)
    if found.is_gradient:
        return None
    others = _others(found)
    posterior = 1 - found.probabilities[:, others]
    noise = float(np.std(scores[posterior <= 0.5]))
    at_zero = found.means.size == 3 and abs(found.means[others]) < noise
    if at_zero or found.gain <= _gain_with_others_at_zero(scores):
        return None
    return Choice(posterior, 0.0, noise, free_locations=True)


def _gain_with_others_at_zero(scores: Floats) -> float:
    """BIC of one normal group minus that of members at +-m and others at zero."""
    standard = scores / np.sqrt(np.mean(scores**2))
    normal = -scores.size * (float(np.log(2 * np.pi * standard.var())) + 1)
    mixture = 2 * fit_mixture(standard, None).likelihood
    return mixture - normal - (_PARAMETERS - 2) * float(np.log(scores.size))


def _others(found: ScoreGroups) -> int:
    """The group that is not part of the module: the bulk, or the larger one of two groups."""
    bulk: Indices = np.flatnonzero(found.directions == 0)
    return int(bulk[0]) if bulk.size else int(np.argmax(found.sizes))
