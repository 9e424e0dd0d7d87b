"""What modules have to do with what is known about the samples: labels, numbers, survival times."""

from netbic.association.associate import Associations, Removed, associate, associate_pairs, associate_scores
from netbic.association.associate import SurvivalCurves as SurvivalCurves
from netbic.association.associate import matched_scores as matched_scores
from netbic.association.associate import survival_curves as survival_curves
from netbic.association.associate import two_groups as two_groups
from netbic.association.associate import wide as wide
from netbic.association.membership import gene_membership
from netbic.association.stored import WRITTEN as WRITTEN
from netbic.association.stored import stored_record as stored_record
from netbic.association.stored import stored_samples as stored_samples
from netbic.association.stored import stored_scores, write_associations
from netbic.association.stored import stored_variables as stored_variables
from netbic.association.stored import stored_verdicts as stored_verdicts
from netbic.association.tests import CoxModel, cox, kaplan_meier
from netbic.association.tests import Result as Result
from netbic.association.variables import Averages as Averages
from netbic.association.variables import SampleMatch, Variable, match_samples, read_variables
from netbic.association.variables import check_known as check_known
from netbic.association.variables import listed_names as listed_names
from netbic.association.variables import variable_line as variable_line
from netbic.association.words import LEVEL as LEVEL
from netbic.association.words import best_modules as best_modules
from netbic.association.words import direction as direction
from netbic.association.words import in_words, signed_effects, strongest
from netbic.association.words import main_tests as main_tests
from netbic.association.words import membership_tests as membership_tests
from netbic.association.words import numbers as numbers
from netbic.association.words import reliability as reliability

__all__ = [
    "Associations",
    "CoxModel",
    "Removed",
    "SampleMatch",
    "Variable",
    "associate",
    "associate_pairs",
    "associate_scores",
    "cox",
    "gene_membership",
    "in_words",
    "kaplan_meier",
    "match_samples",
    "read_variables",
    "signed_effects",
    "stored_scores",
    "strongest",
    "write_associations",
]


def __dir__() -> list[str]:
    return sorted(__all__)
