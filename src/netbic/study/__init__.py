"""A study: an expression matrix and a network, preprocessed, matched by name, and checked."""

from netbic.study.checks import Finding, check_expression
from netbic.study.matching import Alignment, align, with_names
from netbic.study.named_fit import fit_by_name
from netbic.study.options import MatchingOptions, PreprocessingOptions, StudyOptions
from netbic.study.preprocessing import PreparedExpression, prepare
from netbic.study.scores import scores_by_name, scores_table
from netbic.study.study import Study, digest, open_study
from netbic.study.two_tables import SampleMatching, TwoTables, in_features, match_samples, open_two_tables, table_lines

__all__ = [
    "Alignment",
    "Finding",
    "MatchingOptions",
    "PreparedExpression",
    "PreprocessingOptions",
    "SampleMatching",
    "Study",
    "StudyOptions",
    "TwoTables",
    "align",
    "check_expression",
    "digest",
    "fit_by_name",
    "in_features",
    "match_samples",
    "open_study",
    "open_two_tables",
    "prepare",
    "scores_by_name",
    "scores_table",
    "table_lines",
    "with_names",
]
