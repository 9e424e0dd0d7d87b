"""Fitted models in folders, tables and checkpoints, with one state behind all of them; output folders of fits."""

from netbic.storage.checkpoint import Checkpoint as Checkpoint
from netbic.storage.checkpoint import CheckpointMismatch as CheckpointMismatch
from netbic.storage.checkpoint import Task as Task
from netbic.storage.checkpoint import read_header as read_header
from netbic.storage.cohorts import write_cohort as write_cohort
from netbic.storage.frames import Frames as Frames
from netbic.storage.frames import from_frames as from_frames
from netbic.storage.frames import to_frames as to_frames
from netbic.storage.model_folders import load as load
from netbic.storage.model_folders import save as save
from netbic.storage.networks import check_network_file as check_network_file
from netbic.storage.networks import write_network as write_network
from netbic.storage.new_samples import read_again as read_again
from netbic.storage.new_samples import read_like as read_like
from netbic.storage.npz import npz_arrays as npz_arrays
from netbic.storage.npz import npz_bytes as npz_bytes
from netbic.storage.runs import Run as Run
from netbic.storage.runs import check_folder as check_folder
from netbic.storage.state import ModelState as ModelState
from netbic.storage.state import model_from as model_from
from netbic.storage.state import settings_from as settings_from
from netbic.storage.state import settings_of as settings_of
from netbic.storage.state import state_of as state_of
from netbic.storage.tables import modules_table as modules_table
from netbic.storage.tables import sides_of as sides_of
from netbic.storage.tables import summary_table as summary_table
