"""What modules have to do with what is known about the samples: labels, numbers, survival times."""

from netbic.association.associate import Associations, Removed, associate, associate_scores
from netbic.association.membership import gene_membership
from netbic.association.pairs import associate_pairs
from netbic.association.shared_features import same_names
from netbic.association.stored import stored_scores, write_associations
from netbic.association.tests import CoxModel, cox, kaplan_meier
from netbic.association.variables import SampleMatch, Variable, match_samples, read_variables
from netbic.association.words import in_words, signed_effects, strongest

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
    "same_names",
    "signed_effects",
    "stored_scores",
    "strongest",
    "write_associations",
]


def __dir__() -> list[str]:
    return sorted(__all__)
