"""Files: expression matrices, networks and gene sets in, results and checkpoints out."""

from netbic.errors import InputError
from netbic.io.alignment import Alignment, align
from netbic.io.cohorts import write_cohort
from netbic.io.converting import convert
from netbic.io.expression import Expression, read_expression
from netbic.io.files import locked, read_json, read_table, write_json, write_table
from netbic.io.frames import Frames, from_frames, to_frames
from netbic.io.gene_sets import GeneSets, read_gene_sets
from netbic.io.lazy import open_expression
from netbic.io.model_folders import load, save
from netbic.io.networks import Network, NetworkAccount, read_network
from netbic.io.outputs import FolderInUse, finished_record
from netbic.io.preparing import Prepared, prepare
from netbic.io.results import modules_table, summary_table
from netbic.io.runs import Run, check_folder
from netbic.io.scores import scores_by_name, scores_table
from netbic.io.state import settings_from, settings_of
from netbic.io.study import Study, open_study, read_like

__all__ = [
    "Alignment",
    "Expression",
    "FolderInUse",
    "Frames",
    "GeneSets",
    "InputError",
    "Network",
    "NetworkAccount",
    "Prepared",
    "Run",
    "Study",
    "align",
    "check_folder",
    "convert",
    "finished_record",
    "from_frames",
    "load",
    "locked",
    "modules_table",
    "open_expression",
    "open_study",
    "prepare",
    "read_expression",
    "read_gene_sets",
    "read_json",
    "read_like",
    "read_network",
    "read_table",
    "save",
    "scores_by_name",
    "scores_table",
    "settings_from",
    "settings_of",
    "summary_table",
    "to_frames",
    "write_cohort",
    "write_json",
    "write_table",
]
