"""A study: an expression matrix and a network, preprocessed, matched by name, and checked."""

from netbic.study.checks import Finding, check_expression
from netbic.study.matching import Alignment, align, with_names
from netbic.study.options import MatchingOptions, PreprocessingOptions, StudyOptions
from netbic.study.preprocessing import PreparedExpression, prepare
from netbic.study.scores import scores_by_name, scores_table
from netbic.study.study import Study, digest, open_study

__all__ = [
    "Alignment",
    "Finding",
    "MatchingOptions",
    "PreparedExpression",
    "PreprocessingOptions",
    "Study",
    "StudyOptions",
    "align",
    "check_expression",
    "digest",
    "open_study",
    "prepare",
    "scores_by_name",
    "scores_table",
    "with_names",
]
