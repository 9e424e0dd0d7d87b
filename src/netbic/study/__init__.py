"""A study: an expression matrix and a network, preprocessed and matched by name."""

from netbic.study.matching import Alignment, align, with_names
from netbic.study.options import MatchingOptions, PreprocessingOptions, StudyOptions
from netbic.study.preprocessing import PreparedExpression, prepare
from netbic.study.scores import scores_by_name, scores_table
from netbic.study.study import Study, digest, open_study

__all__ = [
    "Alignment",
    "MatchingOptions",
    "PreparedExpression",
    "PreprocessingOptions",
    "Study",
    "StudyOptions",
    "align",
    "digest",
    "open_study",
    "prepare",
    "scores_by_name",
    "scores_table",
    "with_names",
]
