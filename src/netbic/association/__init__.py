"""What modules have to do with what is known about the samples: labels, numbers, survival times."""

from netbic.association.associations import Associations, associate, associate_scores
from netbic.association.averages import Averages as Averages
from netbic.association.averages import repeated_measures as repeated_measures
from netbic.association.contingency import chi_squared, fisher
from netbic.association.correlation import pearson, spearman
from netbic.association.cox import CoxModel, cox
from netbic.association.curves import SurvivalCurves, survival_curves
from netbic.association.directions import signed_effects
from netbic.association.headlines import LEVEL as LEVEL
from netbic.association.headlines import Answer as Answer
from netbic.association.headlines import best_modules as best_modules
from netbic.association.headlines import main_tests as main_tests
from netbic.association.headlines import membership_tests as membership_tests
from netbic.association.headlines import reliability as reliability
from netbic.association.headlines import strongest
from netbic.association.linear import linear_model, standardised_difference
from netbic.association.matching import SampleMatch, match_samples
from netbic.association.membership import gene_membership
from netbic.association.module_tests import TwoGroups, two_groups
from netbic.association.pairs import associate_pairs
from netbic.association.rank_tests import kruskal_wallis, mann_whitney
from netbic.association.removed import Removed
from netbic.association.results import Result
from netbic.association.sample_table import listed_names as listed_names
from netbic.association.sample_table import read_variables
from netbic.association.scores import matched_scores as matched_scores
from netbic.association.scores import wide as wide
from netbic.association.stored import stored_record as stored_record
from netbic.association.stored import stored_samples as stored_samples
from netbic.association.stored import stored_scores
from netbic.association.stored import stored_variables as stored_variables
from netbic.association.stored import stored_verdicts as stored_verdicts
from netbic.association.survival import kaplan_meier, log_rank
from netbic.association.variables import Variable
from netbic.association.variables import check_known as check_known
from netbic.association.wording import direction as direction
from netbic.association.wording import in_words
from netbic.association.wording import numbers as numbers
from netbic.association.wording import variable_line as variable_line
from netbic.association.writing import WRITTEN as WRITTEN
from netbic.association.writing import write_associations

__all__ = [
    "Associations",
    "CoxModel",
    "Removed",
    "Result",
    "SampleMatch",
    "SurvivalCurves",
    "TwoGroups",
    "Variable",
    "associate",
    "associate_pairs",
    "associate_scores",
    "chi_squared",
    "cox",
    "fisher",
    "gene_membership",
    "in_words",
    "kaplan_meier",
    "kruskal_wallis",
    "linear_model",
    "log_rank",
    "mann_whitney",
    "match_samples",
    "pearson",
    "read_variables",
    "signed_effects",
    "spearman",
    "standardised_difference",
    "stored_scores",
    "strongest",
    "survival_curves",
    "two_groups",
    "write_associations",
]


def __dir__() -> list[str]:
    return sorted(__all__)
