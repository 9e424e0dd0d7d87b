"""Fitted models in folders, their tables, and output folders of commands that can be resumed."""

from netbic.storage.models import load as load
from netbic.storage.models import save as save
from netbic.storage.runs import read_again as read_again
from netbic.storage.runs import read_like as read_like
from netbic.storage.tables import modules_table as modules_table
from netbic.storage.tables import pairs_table as pairs_table
from netbic.storage.tables import summary_table as summary_table
from netbic.storage.tables import weights_table as weights_table
from netbic.storage.tables import write_cohort as write_cohort
from netbic.storage.tables import write_network as write_network
