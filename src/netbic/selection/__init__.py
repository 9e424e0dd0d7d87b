"""Model selection: sizes, smoothness and number of modules, stability, and whether the graph helps."""

from netbic.estimators.studies import as_one_study
from netbic.selection.graph_value import GraphValue, graph_value
from netbic.selection.groups import Judgement, SampleGroups, group_summary, sample_groups
from netbic.selection.groups import selected_samples as selected_samples
from netbic.selection.judge import OPPOSITE as OPPOSITE
from netbic.selection.judge import JudgedSets, judge
from netbic.selection.n_modules import ModuleCount, n_modules
from netbic.selection.pair_tests import PairTests, pair_tests
from netbic.selection.resampling import correlation as correlation
from netbic.selection.resampling import for_part as for_part
from netbic.selection.resampling import graphs_by_position as graphs_by_position
from netbic.selection.resampling import partners as partners
from netbic.selection.stability import AxisStability, Stability, stability
from netbic.selection.tune import Tuning, default_grid, tune
from netbic.selection.tune import printable as printable
from netbic.selection.tune import standard_error_of_difference as standard_error_of_difference
from netbic.selection.verdicts import KINDS as KINDS
from netbic.selection.verdicts import Plan as Plan
from netbic.selection.verdicts import Verdicts, verdicts
from netbic.selection.verdicts import kind_of_verdict as kind_of_verdict
from netbic.selection.verdicts import verdict_sentence as verdict_sentence

__all__ = [
    "AxisStability",
    "GraphValue",
    "JudgedSets",
    "Judgement",
    "ModuleCount",
    "PairTests",
    "SampleGroups",
    "Stability",
    "Tuning",
    "Verdicts",
    "as_one_study",
    "default_grid",
    "graph_value",
    "group_summary",
    "judge",
    "n_modules",
    "pair_tests",
    "sample_groups",
    "stability",
    "tune",
    "verdicts",
]


def __dir__() -> list[str]:
    return sorted(__all__)
