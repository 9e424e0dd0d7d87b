"""Which associations are stated, in which order and in which words: one rule for commands, report and plots.

Modules and pairs count from 1 in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from netbic.association.guesses import says_batch, says_unit
from netbic.errors import InputError, plural, some_names

LEVEL: Final = 0.05  # largest q-value of an association that is stated
UNADJUSTED: Final = "survival is not adjusted for stage, age or other variables: name columns to adjust for (`adjust`)"
_MAIN = ("Mann-Whitney", "linear model, level", "Spearman", "partial Spearman", "Cox score")
_MOST_ANSWERS = 12
_NO: Final = {"0", "no", "n", "false", "negative", "neg", "-", "absent", "never"}
_SHOWN = 3  # associations per variable that commands print
_COMPARED = 3  # associations of a variable that are printed before and after adjustment
_EXPLAINED = 0.5  # share of the ranks of the scores that a batch explains, from which on it is said
_MINUS = "\N{MINUS SIGN}"
# Effects with a direction, by the end of their names: as a number from -1 to 1, and what the legend calls it. The first
# one that a variable has is drawn.
_SIGNED: Final[dict[str, tuple[Callable[[NDArray[Any]], NDArray[Any]], str]]] = {
    "AUC": (lambda auc: 2 * auc - 1, f"2 AUC {_MINUS} 1"),
    "standardised difference": (
        lambda difference: 2 * ndtr(difference / np.sqrt(2)) - 1,
        f"2 AUC {_MINUS} 1, from standardised difference",
    ),
    "Spearman rho": (lambda rho: rho, "Spearman rho"),
    "Pearson r": (lambda r: r, "Pearson r"),
    "hazard ratio per sd": (lambda ratio: np.clip(np.log2(ratio), -1, 1), "log2 HR per sd, cut at \u00b11"),
}

Words = Mapping[int, str]  # verdicts, by the number of the module or pair


class Answer(NamedTuple):
    """The module or pair that goes best with a label, a number or survival; `row` is its test."""

    variable: str
    level: str
    row: dict[Any, Any]

    @property
    def found(self) -> bool:
        """Whether there is such a module; otherwise the row is that of the smallest q-value."""
        return bool(self.row["q"] <= LEVEL)


def unit_of(table: pd.DataFrame) -> str:
    """What a table of tests is about: "module", or "pair" of two tables."""
    return "pair" if "pair" in table else "module"


def main_tests(table: pd.DataFrame, by: Sequence[str] = ("variable",)) -> pd.DataFrame:
    """The test of the scores of every module and level (AUC, Spearman, Cox), by decreasing strength.

    Of two levels, the one with higher scores in the module is kept, because the other one says the same; of "yes" and
    "no" (1 and 0, ...) always "yes". The levels of a variable are those in the whole table or, `by` module and
    variable, those that a test of the module has.
    """
    p = "p" if "p" in table else "q"
    main = table[is_main(table) & table[p].notna()]
    away = np.array([_distance(*pair) for pair in zip(main["effect"], main["effect_name"], strict=True)], dtype=float)
    main = main.assign(_away=np.abs(away), _lower=away < 0)
    two = main.groupby(list(by))["level"].transform("nunique").eq(2) if len(main) else main["_lower"]
    says_no = main["level"].astype(str).str.lower().isin(_NO)
    asked = says_no.groupby(main["variable"]).transform("any") & ~says_no.groupby(main["variable"]).transform("all")
    main = main[~(two & np.where(asked, says_no, main["_lower"]))].sort_values(
        [p, "_away"], ascending=[True, False], kind="stable"
    )
    return main.drop(columns=["_away", "_lower"])


def is_main(table: pd.DataFrame) -> pd.Series[bool]:
    """Which tests are those of the scores with a level, numbers or survival times: one for each, and no variants."""
    return table["test"].isin(_MAIN) & ~((table["test"] == "linear model, level") & (table["level"] == ""))


def is_survival(table: pd.DataFrame) -> pd.Series[bool]:
    """Which tests are about survival times."""
    return table["effect_name"].astype(str).str.startswith("hazard ratio")


def membership_tests(table: pd.DataFrame) -> pd.DataFrame:
    """Levels that are more frequent among samples that are up or down, with the column `sides`; the strongest first.

    A label of samples of which some are up and others down is found by these tests only. Headlines do not use them.
    """
    fisher = table["test"].astype(str).str.startswith("Fisher")
    tests = table[fisher & (table["effect"] > 1) & (table["q"] <= LEVEL)]
    where = [tests[unit_of(tests)], tests["variable"], tests["level"]]
    sides = tests["test"].str.removeprefix("Fisher, ").groupby(where)
    together = sides.transform(" and ".join) if len(tests) else tests["test"]
    return tests.assign(sides=together).sort_values("q", kind="stable")


def reliability(word: str) -> int:
    """How far a module or pair can be trusted: 0 unless it repeats another one (1), or is no more than noise (2)."""
    return 2 if word == "doubtful" else 1 if word.startswith("repeats") else 0


def mark(word: str) -> str:
    """A verdict behind the name of a module or pair that cannot be trusted, or that repeats another one; else "".

    Examples
    --------
    >>> mark("doubtful"), mark("repeats 2"), mark("strong")
    (' (doubtful)', ' (repeats 2)', '')
    """
    return f" ({word})" if reliability(word) else ""


def strongest(table: pd.DataFrame, verdicts: Words | None = None) -> pd.DataFrame:
    """The main test of every module and level, the strongest of each variable first.

    Significant associations come first, and among them those of modules that are neither doubtful nor repetitions. Of
    three and more levels, each is listed once, with its first module. Of pairs of two tables, the table with the
    stronger association is listed.
    """
    words, main = verdicts or {}, main_tests(table)
    if "pair" in main:
        main = main.drop_duplicates(["variable", "level", "pair"])
    open_ = ~(main["q"] <= LEVEL)
    trust = [reliability(words.get(int(number), "")) for number in main[unit_of(main)]]
    main = main.assign(_open=open_, _trust=np.where(open_, 0, trust)).sort_values(["_open", "_trust"], kind="stable")
    parts = [own for name in table["variable"].unique() if len(own := main[main["variable"] == name])]
    parts = [own.drop_duplicates("level") if own["level"].nunique() > 2 else own for own in parts]
    return (pd.concat(parts) if parts else main).drop(columns=["_open", "_trust"])


def strongest_found(table: pd.DataFrame, verdicts: Words | None = None) -> pd.DataFrame:
    """Of `strongest`, the first three significant associations of each variable, which commands print."""
    found = strongest(table, verdicts)
    return found[found["q"] <= LEVEL].groupby("variable", sort=False).head(_SHOWN)


def adjusted_lines(before: pd.DataFrame, after: pd.DataFrame, verdicts: Words | None = None) -> Iterator[str]:
    """Associations that were significant without adjustment, with effect and q before and after it."""
    unit = unit_of(after)

    def key(row: dict[Any, Any]) -> tuple[Any, ...]:
        return tuple(row.get(name) for name in (unit, "table", "variable", "level"))

    adjusted = {key(row): row for row in after[is_main(after) & after["q"].notna()].to_dict("records")}
    for variable, own in strongest(before, verdicts).groupby("variable", sort=False):
        found = [row for row in own[own["q"] <= LEVEL].to_dict("records") if key(row) in adjusted]
        for row in found[:_COMPARED]:
            yield f"{variable}: {in_words(row, verdicts)}; adjusted: {numbers(adjusted[key(row)])}"
        if found:
            n, n_left = len(found), sum(adjusted[key(row)]["q"] <= LEVEL for row in found)
            verb = "remains" if n_left == 1 else "remain"
            yield f"{variable}: {n_left:,} of {n:,} association{'s' * (n != 1)} {verb} (q <= {LEVEL})"


def says_batch_or_unit(name: object) -> bool:
    """Whether the name of a column says batch, plate, site and the like, or donor and the like."""
    return says_batch(name) or says_unit(name)


def batch_notes(table: pd.DataFrame, samples: pd.DataFrame, sample_name: str = "sample") -> Iterator[str]:
    """Say which columns that name batches or donors explain most of the scores of a module, and what to do about it.

    Batches come first. Of several columns of donors (donor, sample_id), the coarsest is named. `samples` is the table
    of the samples.
    """
    tests = table[(table["effect_name"] == "epsilon squared") & (table["effect"] >= _EXPLAINED) & (table["q"] <= LEVEL)]
    if unit_of(table) != "module":
        return
    names = batch_columns(samples, tests["variable"].unique())
    said: dict[bool, set[int]] = {True: set(), False: set()}  # of batches, of donors
    for name in sorted(names, key=lambda name: (not says_batch(name), samples[name].nunique())):
        known = said[says_batch(name)]
        own = tests[(tests["variable"] == name) & ~tests["module"].isin(known)].sort_values("module")
        if own.empty:
            continue
        known.update(own["module"].tolist())
        shares = ", ".join(
            f"module {module} ({100 * share:.0f} %)" for module, share in zip(own["module"], own["effect"], strict=True)
        )
        yield (
            f"{name} explains most of {shares}: if this is not what you look for, remove its effect when modules are "
            f"found (`covariates={name}`), or see whether they hold in {plural(name)} left out (verdicts with "
            f"`groups={name}`){_not_told_apart(name, samples, sample_name)}"
        )


def batch_columns(samples: pd.DataFrame, names: Iterable[object] | None = None) -> list[str]:
    """The columns (among `names`) that name batches and, of those that name donors, the coarsest."""
    known = [str(name) for name in (samples.columns if names is None else names)]
    return [name for name in known if says_batch(name) or _is_coarsest(name, samples)]


def _not_told_apart(name: str, samples: pd.DataFrame, sample_name: str) -> str:
    """Which batches have a single donor: what is particular to either cannot be told apart."""
    units = [str(each) for each in samples.columns if says_unit(each) and not says_batch(each)]
    units = [each for each in units if 1 < samples[each].nunique() <= len(samples) / 2]
    if not says_batch(name) or not units:
        return ""
    unit = min(units, key=lambda each: samples[each].nunique())
    owners = samples[[name, unit]].dropna().astype(str).drop_duplicates().groupby(name)[unit].agg(["size", "first"])
    alone = [f"{batch} from {unit} {owner}" for batch, owner in owners.loc[owners["size"] == 1, "first"].items()]
    if not alone:
        return ""
    which = some_names(alone, 3, quoted=False).replace(" from ", " come from ", 1)
    return f"; all {sample_name}s of {name} {which}: there, {name} and {unit} cannot be told apart"


def _is_coarsest(name: str, samples: pd.DataFrame) -> bool:
    """Whether a column names donors, and no other one names donors that have several of its labels each."""
    others = [each for each in samples.columns if each != name and says_unit(each) and not says_batch(each)]
    pairs = [samples[[name, each]].dropna().drop_duplicates() for each in others]
    finer = [own[name].is_unique and 1 < own.iloc[:, 1].nunique() < len(own) for own in pairs]
    return says_unit(name) and not any(finer)


def best_modules(table: pd.DataFrame, verdicts: Words | None = None) -> tuple[list[Answer], int]:
    """The module or pair that goes best with each label, number and survival, and how many more are left out.

    These are the tests of the scores (`strongest`), as in what commands print, not those of groups. Modules that are
    neither doubtful nor repetitions are preferred. A variable of which no level has a module gives one answer. Batches,
    donors and the like come last, only with the levels that have a module. At most 12 answers are given, those with the
    smallest q-values; of every variable at least one, if possible.
    """
    answers, technical = list[Answer](), list[Answer]()
    for variable, own in strongest(table, verdicts).groupby("variable", sort=False):
        rows = own if own["level"].nunique() > 2 else own.head(1)
        found = [Answer(str(variable), str(row["level"]), row) for row in rows.to_dict("records")]
        some = len(found) == 1 or any(answer.found for answer in found)
        found = found if some else [found[0]._replace(level="")]
        if says_batch_or_unit(variable):
            technical += [answer for answer in found if answer.found] or found
        else:
            answers += found
    answers += technical
    if len(answers) <= _MOST_ANSWERS:
        return answers, 0
    known = pd.DataFrame({"variable": [each.variable for each in answers], "q": [each.row["q"] for each in answers]})
    again = known.sort_values("q", kind="stable").groupby("variable").cumcount() > 0
    kept = sorted(known.assign(again=again).sort_values(["again", "q"], kind="stable").index[:_MOST_ANSWERS])
    return [answers[at] for at in kept], len(answers) - len(kept)


def _distance(effect: float, name: str) -> float:
    """How far an effect is from none, with its sign."""
    return effect - (1.0 if name.startswith(("hazard ratio", "odds ratio")) else 0.5 if name == "AUC" else 0.0)


def signed_effects(table: pd.DataFrame) -> pd.DataFrame:
    """The effects with a direction, each as a number from -1 to 1.

    Parameters
    ----------
    table : DataFrame
        The `table` of `netbic.associate`, or the content of associations.tsv.

    Returns
    -------
    DataFrame
        The rows of the table that have a direction, one per module and level (of two levels only the first, because the
        second one is its opposite), with the further columns `column` (variable and level), `signed` and `scale` (what
        the number is).

    Examples
    --------
    >>> import pandas as pd
    >>> columns = ["module", "variable", "level", "effect", "effect_name", "q"]
    >>> table = pd.DataFrame([(1, "pam50", "Basal", 0.05, "AUC", 1e-9)], columns=columns)
    >>> signed_effects(table)[["column", "signed"]].values.tolist()
    [['pam50: Basal', -0.9]]
    """
    needed = ("module", "variable", "level", "effect", "effect_name", "q")
    if missing := [name for name in needed if name not in getattr(table, "columns", ())]:
        raise InputError(f"the table has no column {missing[0]!r}: give the table of netbic.associate")
    parts = list[pd.DataFrame]()
    for variable, own in table.groupby("variable", sort=False):
        names = own["effect_name"].astype(str)
        kind = next((end for end in _SIGNED if names.str.endswith(end).any()), None)
        if kind is None:
            continue
        own = own[names.str.endswith(kind)]
        levels = own["level"].fillna("").astype(str)
        if levels.nunique() == 2:
            own, levels = own[levels == levels.iloc[0]], levels[levels == levels.iloc[0]]
        texts = [f"{variable}: {level}" if level else str(variable) for level in levels]
        signed, scale = _SIGNED[kind]
        with np.errstate(divide="ignore", invalid="ignore"):
            effects = signed(own["effect"].to_numpy(dtype=float))
        parts.append(own.assign(column=texts, signed=effects, scale=scale))
    return pd.concat(parts) if parts else pd.DataFrame(columns=[*table.columns, "column", "signed", "scale"])


def one_row_each(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """A table of tests for a grid, with a row of the grid in `module`, and the names of all rows.

    Pairs have two rows, one for each table: "1 RNA", "1 protein", "2 RNA", ...
    """
    if unit_of(table) == "module":
        return table, [str(number) for number in range(1, int(table["module"].max()) + 1)] if len(table) else []
    names = list(dict.fromkeys(table["table"].astype(str)))  # X comes first
    places = {name: at for at, name in enumerate(names)}
    numbers = (table["pair"] - 1) * len(names) + table["table"].astype(str).map(places) + 1
    most = int(table["pair"].max()) if len(table) else 0
    return table.assign(module=numbers), [f"{pair} {name}" for pair in range(1, most + 1) for name in names]


def in_words(row: dict[Any, Any], verdicts: Words | None = None) -> str:
    """An association in words; a module that is doubtful or repeats another one is marked.

    Examples
    --------
    >>> row = {"module": 1, "level": "Basal", "effect": 0.012, "effect_name": "AUC", "q": 1e-40}
    >>> in_words(row)
    'Basal is lower in module 1 (AUC 0.01, q = 1e-40)'
    >>> row |= {"level": "", "effect": 1.5, "effect_name": "hazard ratio per sd", "q": 0.002}
    >>> in_words(row, {1: "doubtful"})
    'the risk rises with module 1 (doubtful), hazard ratio per sd 1.50, q = 0.002'
    """
    level, after = str(row["level"]), mark((verdicts or {}).get(int(row.get("pair", row.get("module", 0))), ""))
    place = f"pair {int(row['pair'])}, {row['table']}" if "pair" in row else ""
    place = place or f"module {int(row['module'])}"
    what = f"{level} is {direction(row)} in {place}" if level else f"{direction(row)} with {place}"
    return f"{what}{after}, {numbers(row)}" if after else f"{what} ({numbers(row)})"


def _rounded(q: float) -> str:
    """One digit, or two if one would hide on which side of the level it is.

    Examples
    --------
    >>> _rounded(0.0312), _rounded(0.0532)
    ('0.03', '0.053')
    """
    short = f"{q:.1g}"
    return short if (float(short) <= LEVEL) == (q <= LEVEL) else f"{q:.2g}"


def direction(row: dict[Any, Any]) -> str:
    """What an association says about a level ("higher", "lower", "more often up"), a number or the risk."""
    name, test, effect = str(row["effect_name"]), str(row.get("test", "")), float(row["effect"])
    if test.startswith("Fisher"):
        return f"{'more' if effect >= 1 else 'less'} often {row.get('sides', test.removeprefix('Fisher, '))}"
    more = _distance(effect, name) > 0
    if str(row["level"]):
        return "higher" if more else "lower"
    return f"{'the risk ' * name.startswith('hazard')}{'rises' if more else 'falls'}"


def numbers(row: dict[Any, Any]) -> str:
    """The effect and its q-value; more than two decimals where they would hide that an effect is not complete."""
    q, effect = float(row["q"]), float(row["effect"])
    decimals = 4 if 0 < min(abs(effect), abs(1 - effect)) < 0.005 else 2
    return f"{row['effect_name']} {effect:.{decimals}f}, {f'q = {_rounded(q)}' if q > 0 else 'q < 1e-300'}"
