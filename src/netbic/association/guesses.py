"""What names and values of columns suggest: levels that have an order, numbers of batches, identifiers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pandas as pd

from netbic.association.values import whole_numbers

MOST_LEVELS: Final = 50
_MOST_STEPS = 10  # of a stage or grade that is a number
UNITS: Final = {
    *("donor", "patient", "subject", "individual", "participant", "person", "proband", "case", "sample", "specimen"),
    *("animal", "mouse", "mice", "rat", "litter", "family", "twin", "pair", "clone", "line", "orig"),
}
IDENTIFIER: Final = {
    *("id", "ids", "ident", "no", "nr", "number", "code", "name", "label", "barcode", "key", "uuid"),
    *("bcr", "submitter", "cell"),  # bcr_patient_barcode of TCGA, cell_line
}
_BATCHES: Final = {
    *("batch", "plate", "lane", "run", "site", "centre", "center", "chip", "array", "slide", "plex", "pool"),
    *("flowcell", "cohort", "study", "institution", "hospital", "cluster"),
}
_MEASURES: Final = {
    *("age", "time", "second", "seconds", "minute", "minutes", "hour", "hours", "day", "days", "week", "weeks"),
    *("month", "months", "year", "years", "dose", "order", "rank", "passage", "position", "cycle", "generation"),
    *(
        "temperature",
        "concentration",
        "pseudotime",
        "timepoint",
        "visit",
        "depth",
        "length",
        "size",
        "weight",
        "height",
    ),
    *("volume", "score", "value", "level", "count", "min", "hr", "hrs", "h", "d", "t", "ph"),
}
_FEWEST_ROWS, _FEW_PER_UNIT = 10, 3
_STAGED: Final = {
    *("stage", "staging", "grade", "grading", "figo", "ajcc", "uicc", "tnm", "dukes", "nyha", "differentiation"),
    *("t", "n", "m", "g", "pt", "pn", "pm", "ct", "cn", "cm"),
}
_SCALES: Final = (
    ("none|absent", "very low", "low", "intermediate|medium|middle|moderate|mid", "high", "very high"),
    ("none|absent", "minimal", "mild", "moderate", "severe", "very severe"),
    ("none|absent|negative", "weak", "moderate|intermediate", "strong"),
    (
        "well|well differentiated",
        "intermediate|moderate|moderately|moderately differentiated|intermediately differentiated",
        "poor|poorly|poorly differentiated",
        "undifferentiated",
    ),
    ("early", "intermediate|middle|mid", "late|advanced"),
    ("small", "intermediate|medium|middle", "large"),
)
_NOUN = re.compile(r"\s*(grade|stage|risk|levels?|dose)$")  # low grade
_ROMAN: Final = {"i": 1.0, "ii": 2.0, "iii": 3.0, "iv": 4.0, "v": 5.0}
_NUMBER = r"i{1,3}|iv|v"
_STEP = re.compile(
    r"(?P<word>(?:(?:stage|grade|figo|ajcc|uicc|who|isup)[\s._:-]*)*)"
    rf"(?:(?P<letter>[yrcp]{{0,2}}[tnmg])?(?P<digit>\d|is|x)|(?P<roman>{_NUMBER}))"
    rf"(?:(?P<sub>mi|[a-e])(?P<more>\d)?)?(?:\s*[-/+&]\s*(?:stage\s*)?(?:{_NUMBER}|\d)[a-e]?)?"
)


class Order(NamedTuple):
    """Levels in their order, and those that have no place in it because they mean "not assessed" (NX)."""

    levels: tuple[str, ...]
    not_assessed: tuple[str, ...] = ()


def words_of(name: object) -> list[str]:
    """The words of a name in small letters, without numbers: PatientID and patient_id have the same two."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", str(name))]


def order_of(name: object, labels: Sequence[str]) -> Order | None:
    """The order of stages, grades and words such as low and high; None if the labels are not such a scale.

    I, T1 or G1 could also name groups: then the column must be called stage, grade and the like. So must one of two
    words (low and high), because the tests of two categories say more.

    Examples
    --------
    >>> order_of("stage", ["IIIA", "I", "IV", "IIB"]).levels
    ('I', 'IIB', 'IIIA', 'IV')
    >>> order_of("pathologic_N", ["N1", "NX", "N0"])
    Order(levels=('N0', 'N1'), not_assessed=('NX',))
    >>> order_of("cluster", ["G1", "G2", "G3"]) is None
    True
    """
    named = says_stage(name) or not _STAGED.isdisjoint(words_of(name))
    return (_order_of_words(labels) if named or len(labels) > 2 else None) or _order_of_stages(name, labels, named)


def _order_of_words(labels: Sequence[str]) -> Order | None:
    plain = [_NOUN.sub("", each.lower().replace("_", " ").replace("-", " ")).strip() for each in labels]
    for scale in _SCALES:
        places = {word: place for place, words in enumerate(scale) for word in words.split("|")}
        found = [places.get(word) for word in plain]
        if None not in found and len(set(found)) == len(found) > 1 and set(plain) - {"none", "absent", "negative"}:
            return Order(tuple(each for _, each in sorted(zip(found, labels, strict=True))))
    return None


def _order_of_stages(name: object, labels: Sequence[str], named: bool) -> Order | None:
    steps = {each: _STEP.fullmatch(re.sub(r"\s*\(.*?\)", "", each.lower()).strip()) for each in labels}
    if not labels or None in steps.values():
        return None
    found = {each: step for each, step in steps.items() if step is not None}
    known = {each: step for each, step in found.items() if step["digit"] != "x"}
    letters = {(step["letter"] or "")[-1:] for step in found.values()}
    zeros = {each for each, step in known.items() if step["digit"] == "0"}  # stage 0 comes before stage I
    is_roman = {bool(step["roman"]) for each, step in known.items() if each not in zeros}
    if len(letters) > 1 or len(is_roman) > 1 or len(known) < 2 or not (named or all(s["word"] for s in found.values())):
        return None
    if letters == {""} and is_roman != {True}:  # plain numbers: only in a column called stage or grade
        if not says_stage(name) and not all(step["word"] for step in found.values()):
            return None
        if any(step["digit"] == "is" for step in known.values()):
            return None

    def place(label: str) -> tuple[float, str, str, str]:
        step = known[label]
        number = _ROMAN[step["roman"]] if step["roman"] else 0.5 if step["digit"] == "is" else float(step["digit"])
        return number, (step["sub"] or "").replace("mi", "0"), step["more"] or "", label

    return Order(tuple(sorted(known, key=place)), tuple(each for each in found if each not in known))


def label_without_place(name: object, labels: Sequence[str]) -> str:
    """The only label without which the others would have an order (a misspelt "unknown"); "" if there is none."""
    if not 3 <= len(labels) <= _MOST_STEPS:
        return ""
    found = [label for label in labels if order_of(name, [each for each in labels if each != label])]
    return found[0] if len(found) == 1 else ""


def says_stage(name: object) -> bool:
    """Whether a name ends with stage or grade: tumorstage, grade_figo."""
    return any(word.endswith(("stage", "grade")) for word in words_of(name))


def is_staged_number(column: pd.Series[Any]) -> bool:
    """Whether a column has whole numbers that are stages or grades."""
    numbers = whole_numbers(column) if says_stage(column.name) else None
    return numbers is not None and 2 < numbers.nunique() <= _MOST_STEPS


def is_batch(column: pd.Series[Any]) -> bool:
    """Whether a column has whole numbers that name batches, sites and the like: few different ones, each repeated."""
    numbers = whole_numbers(column) if says_batch(column.name) else None
    return numbers is not None and 2 * numbers.nunique() <= len(numbers) and numbers.nunique() <= MOST_LEVELS


def says_batch(name: object) -> bool:
    """Whether the name of a column says batch, plate, site and the like."""
    words = [word for word in words_of(name) if word not in IDENTIFIER] or [""]
    return words[-1] in _BATCHES or words[-1].endswith(("plex", "batch", "plate"))


def says_unit(name: object) -> bool:
    """Whether the name of a column consists of words for donors and identifiers, such as PatientID."""
    words = set(words_of(name))
    return bool(words & UNITS) and words <= UNITS | IDENTIFIER


def says_identifier(name: object) -> bool:
    """Whether the name of a column says that it identifies samples or donors: patient, barcode, id."""
    words = set(words_of(name))
    return says_unit(name) or (bool(words & {"id", "ids", "barcode", "uuid"}) and words <= UNITS | IDENTIFIER)


def is_mostly_unique(column: pd.Series[Any]) -> bool:
    """Whether hardly any two samples have the same value: fewer than three on average."""
    return int(column.notna().sum()) < _FEW_PER_UNIT * column.nunique()


def numbers_rows(column: pd.Series[Any]) -> bool:
    """Whether a column has the numbers of the rows, from 0 or 1, each once; not if its name says what is measured."""
    numbers = whole_numbers(column)
    if numbers is None or len(numbers) < _FEWEST_ROWS or not _MEASURES.isdisjoint(words_of(column.name)):
        return False
    return bool(numbers.is_unique and numbers.min() in (0, 1) and numbers.max() - numbers.min() == len(numbers) - 1)
