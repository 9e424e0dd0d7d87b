"""The contract of a penalty: everything that the solver, tuning and storage ask of one, with its default.

A penalty sees only magnitudes: the non-negative scores c of a half step. `threshold` returns which entries are kept and
how large they are before the vector is normalised. Signs, graphs and data are handled by the solver. A :class:`Choice`
holds the members that a penalty has chosen from the data, and whether the choice is reliable.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np
from scipy import special

from netbic.arrays import Array, Bools, Floats, Indices

_FEWEST = 2  # members at least
_SATURATED = 0.9  # share of an axis above which a module is not sparse
_WEAK = 1.05  # strength below which noise explains a module; above 1, because heavy tails exceed the expected value
_HETEROSCEDASTIC = 0.3  # heteroscedasticity above which noisy entries displace members with little noise
_DENSE = 2.25  # background above which most entries follow a module; planted modules have up to 1.4, tumours 2 to 8
_RELIABLE_F1 = 0.8  # expected F1 below which the choice of members is not reliable

DIAGNOSTICS: Final = {
    "dense": "most {axis}s follow it to some degree",
    "saturated": "nearly all {axis}s would be members",
    "collapsed": "hardly any {axis} stands out",
    "weak": "noise alone could explain it",
    "heteroscedastic": "the noise differs too much between {axis}s",
    "graded": "the weights of {axis}s decrease to zero without a gap",
    "overlapping": "the scores of members and others overlap",
}


class Kept(NamedTuple):
    """Result of a threshold: indices in increasing order and their magnitudes, all positive."""

    support: Indices
    values: Floats


class GroupShare(NamedTuple):
    """A group of entries in a module: its name, its number of entries, and their share of the squared weights."""

    group: str
    size: int
    share: float


@dataclass(frozen=True, repr=False)
class Penalty:
    """Base class of all penalties, which are frozen dataclasses.

    A penalty must implement `threshold`; everything else has a default.

    Parameters
    ----------
    nonnegative : bool, default=False
        Restrict the vector to non-negative entries (`upos` and `vpos` of PMD). By keyword only.

    Attributes
    ----------
    has_objective : bool
        Whether the normalised threshold of c maximises c'x - value(x) over the unit sphere (or, with `update`, does not
        decrease it). Only then does the objective F exist, and only then does the solver guarantee that F never
        decreases.
    chooses_size : bool
        Whether the size and the weight of the graph are chosen from the data in every half step, by `choose`.
    sizes_from_data : bool
        Whether the joint search sets the sizes of modules in its first rounds, by `fixed_for`.
    clip : float or None
        Robust standard deviations beyond which entries of X are clipped before the fit.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> @dataclass(frozen=True, repr=False)
    ... class Above(Penalty):
    ...     level: float
    ...
    ...     def threshold(self, magnitudes):
    ...         support = np.flatnonzero(magnitudes > self.level)
    ...         return Kept(support, magnitudes[support])
    >>> Above(1.5).threshold(np.array([3.0, 1.0, 2.0])).support
    array([0, 2])
    """

    has_objective: ClassVar[bool] = True
    chooses_size: ClassVar[bool] = False
    sizes_from_data: ClassVar[bool] = False
    clip: ClassVar[float | None] = None
    nonnegative: bool = field(default=False, kw_only=True)

    def __repr__(self) -> str:
        given = ((f.name, getattr(self, f.name)) for f in fields(self) if f.repr and getattr(self, f.name) != f.default)
        plain = ((name, value.item() if isinstance(value, np.generic) else value) for name, value in given)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in plain)})"

    def threshold(self, magnitudes: Floats) -> Kept:
        """Keep and shrink entries of a vector of scores; scores at or below zero are never kept."""
        raise NotImplementedError(f"{type(self).__name__} has no threshold(magnitudes): every penalty needs it")

    def update(self, magnitudes: Floats, groups: Indices | None) -> tuple[Kept, Indices | None]:
        """Threshold the scores of a half step; what is kept, and the groups of entries, for a penalty of groups.

        `groups` are those of the current vector, which satisfies the penalty, or None. The kept scores of a penalty of
        groups must have at least the norm of the scores in these groups. By default the threshold, without groups.
        """
        return self.threshold(magnitudes), None

    def value(self, magnitudes: Floats) -> float:
        """What the objective F subtracts for a unit vector with these non-zero magnitudes."""
        return 0.0

    def check(self, size: int, axis: str, table: str = "X") -> None:
        """Raise ValueError if the penalty cannot be used on an axis ("row" or "column") of this size."""

    def for_names(self, names: Array | None, size: int, axis: str, table: str = "X") -> Self:
        """The penalty for an axis ("row" or "column") of this size with these names; only penalties of groups differ.

        It is called before `check`.
        """
        return self

    def for_part(self, kept: Indices, size: int) -> Self:
        """The penalty for some entries of an axis of this size, as in a fold. The default depends on their share."""
        return self.for_share(len(kept) / size)

    def n_groups(self) -> int | None:
        """Number of groups of entries to keep, or None if the penalty has no groups."""
        return None

    def described(self, weights: Floats, chosen: Indices) -> list[GroupShare]:
        """Describe the groups that `update` chose for a vector with these weights."""
        return []

    def size(self) -> int | None:
        """Number of entries to keep, or None if the penalty does not fix it."""
        return None

    def resized(self, k: int) -> Self:
        """The same penalty for another size. The default replaces the field `k`.

        Fits to a part of the data call it if `size` returns a number.
        """
        if "k" not in (f.name for f in fields(self)):
            raise NotImplementedError(
                f"{type(self).__name__} has no resized(k): fits to a part of the data need it; implement resized"
            )
        changed: dict[str, Any] = {"k": k}
        return replace(self, **changed)

    def for_share(self, share: float) -> Self:
        """The penalty for a share of the entries of its axis, as in a fold or in half of the samples.

        By default a size shrinks in proportion and a penalty without a size stays the same.
        """
        size = self.size()
        return self if size is None else self.resized(max(1, round(size * share)))

    def for_matrix(self, squared_norm: float, n_entries: int) -> Self:
        """The penalty for a matrix of this squared Frobenius norm; only data-driven penalties differ."""
        return self

    def fixed_for(self, magnitudes: Floats, *, core: bool = False) -> Penalty:
        """The penalty with the size that these scores suggest, for a penalty with `sizes_from_data`.

        With `core`, the size of the part with the largest scores, which determines a direction best.
        """
        return self

    def restricted(self) -> Penalty | None:
        """The penalty for vectors that are zero outside some entries; None (the default) if there is no such penalty.

        Its threshold sees the scores of these entries only, and must give the maximiser among such vectors. The solver
        then iterates on a small part of X between rounds on all of X.
        """
        return None

    def choose(self, scores: Floats, smoothed: Floats | None) -> Choice:
        """Choose the members, for a penalty with `chooses_size`.

        Parameters
        ----------
        scores : array
            Signed scores z, in units of the noise of each entry.
        smoothed : array or None
            Product of the graph term with the magnitudes of the current vector.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no choose(scores, smoothed): a penalty that chooses its size needs it"
        )

    def choose_groups(self, scores: Floats) -> Choice | None:
        """Choose the members of a centred axis, by groups with free locations, for a penalty with `chooses_size`.

        None if the scores do not form groups, or if the penalty does not look for them: then `choose` is used.
        """
        return None

    def gradation(self, scores: Floats) -> float:
        """Evidence that the scores of members decrease without a gap, for a penalty with `chooses_size`; 0 if none."""
        return 0.0

    def when_unreliable(self) -> Penalty | None:
        """The penalty to be used for a module whose size, as chosen by this one, is not reliable; None: this one."""
        return None

    def check_graph(self, axis: str, smoothness: float | None, graph_term: str, signs: str) -> None:
        """Raise ValueError if the penalty cannot be combined with these parameters of a graph."""

    def noise_without(self, d: float) -> float:
        """Standard deviation of an entry of the matrix without a module of value d; 0 if unknown."""
        return 0.0

    @property
    def largest_noise(self) -> float:
        """Upper bound of the standard deviation of scores; infinite if unknown."""
        return np.inf


@dataclass(frozen=True, repr=False)
class DataDriven(Penalty):
    """Base class of penalties whose threshold depends on the noise level of the matrix."""

    has_objective: ClassVar[bool] = False
    noise_source: tuple[float, int] | None = field(default=None, repr=False, kw_only=True)

    def for_matrix(self, squared_norm: float, n_entries: int) -> Self:
        """Set the squared norm and the number of entries of the matrix, from which the noise is estimated."""
        return replace(self, noise_source=(squared_norm, n_entries))

    def noise_without(self, d: float) -> float:
        """Standard deviation of an entry of the matrix without a module of value d; 0 if unknown."""
        if self.noise_source is None:
            return 0.0
        squared_norm, n_entries = self.noise_source
        return float(np.sqrt(max(squared_norm - d * d, 0.0) / n_entries))

    @property
    def largest_noise(self) -> float:
        """Frobenius norm of the matrix, an upper bound of the standard deviation of scores; infinite if unknown."""
        return np.inf if self.noise_source is None else float(np.sqrt(self.noise_source[0]))


@dataclass(frozen=True, eq=False)
class Choice:
    """The members that a penalty such as `AdaptiveSupport` has chosen from one vector of scores.

    Attributes
    ----------
    posterior : ndarray
        Probability of membership of each entry; NaN for entries that do not vary.
    sigma : float
        Weight of the graph (absolute, as in the paper); 0 if the graph is not used.
    noise : float
        Standard deviation of the scores of entries that are not members.
    strength : float
        The d of the module, relative to the largest value expected from noise alone for modules of this size.
    heteroscedasticity : float
        Standard deviation, over entries, of the logarithm of their noise.
    background : float
        How large the scores of others than members are, relative to noise: about 1 unless most entries follow the
        module.
    gradation : float
        Evidence (a difference of log-likelihoods) that the scores of members decrease to zero without a gap; 0 if there
        is a gap, or if this was not examined.
    fallback : bool
        Whether the fallback of the penalty was used, because the size is not reliable. The other attributes describe
        what would have been chosen.
    free_locations : bool
        Whether the members are groups among the scores of all entries. The scores of the others are not zero then.
    """

    posterior: Floats
    sigma: float
    noise: float
    strength: float = np.inf
    heteroscedasticity: float = 0.0
    background: float = 1.0
    gradation: float = 0.0
    fallback: bool = False
    free_locations: bool = False

    def among(self, candidates: Bools) -> Choice:
        """The same choice on the full axis: entries that are not candidates get NaN."""
        posterior = np.full(candidates.size, np.nan)
        posterior[candidates] = self.posterior
        return replace(self, posterior=posterior)

    @property
    def support(self) -> Indices:
        """Entries with a posterior above one half; the two most probable if there are fewer."""
        kept = np.flatnonzero(self.posterior > 0.5)
        if kept.size >= _FEWEST:
            return kept
        most_probable = np.argsort(-self.posterior, kind="stable")[:_FEWEST]
        return np.sort(most_probable[~np.isnan(self.posterior[most_probable])])

    @property
    def expected_f1(self) -> float:
        """F1 (harmonic mean of precision and recall) expected from the posteriors; NaN if these are unknown."""
        if np.isnan(self.posterior).all():
            return np.nan
        kept = self.support
        total = kept.size + float(np.nansum(self.posterior))
        return 2 * float(np.nansum(self.posterior[kept])) / total if total > 0 else 0.0

    @property
    def is_hopeless(self) -> bool:
        """Whether the size cannot be reliable, whichever module of about the same samples is found."""
        return self.diagnostic in ("dense", "heteroscedastic")

    @property
    def diagnostic(self) -> str:
        """Why the size is not reliable, a key of `DIAGNOSTICS`; "" if it is reliable."""
        if self.background > _DENSE:
            return "dense"
        if self.support.size > _SATURATED * np.count_nonzero(~np.isnan(self.posterior)):
            return "saturated"
        if np.count_nonzero(self.posterior > 0.5) <= _FEWEST:
            return "collapsed"
        if self.strength < _WEAK:
            return "weak"
        if self.heteroscedasticity > _HETEROSCEDASTIC:
            return "heteroscedastic"
        if self.gradation > 0:
            return "graded"
        return "overlapping" if self.expected_f1 < _RELIABLE_F1 else ""


def expected_noise_norm(size: int, kept: int) -> float:
    """Expected norm of the `kept` largest of `size` standard normal numbers.

    By Chevet's inequality, the expected maximum of u'Zv over unit vectors with k and l non-zero entries, Z standard
    normal, is at most the sum of the norms of both axes.

    Examples
    --------
    >>> round(expected_noise_norm(100, 100), 6), round(expected_noise_norm(100, 1), 1)
    (10.0, 2.9)
    """
    edge = -float(special.ndtri(kept / (2 * size)))
    density = np.exp(-(edge**2) / 2) / np.sqrt(2 * np.pi)
    return float(np.sqrt(size * (2 * edge * density + kept / size)))
