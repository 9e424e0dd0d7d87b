"""Fitted models kept in folders, tables and checkpoints: one state behind all of them."""

from netbic.storage.checkpoint import Checkpoint, CheckpointMismatch, Task, read_header
from netbic.storage.cohorts import write_cohort
from netbic.storage.frames import Frames, from_frames, to_frames
from netbic.storage.model_folders import load, save
from netbic.storage.new_samples import read_like
from netbic.storage.npz import npz_arrays
from netbic.storage.runs import Run, check_folder
from netbic.storage.state import ModelState, model_from, settings_from, settings_of, state_of
from netbic.storage.tables import modules_table, summary_of, summary_table

__all__ = [
    "Checkpoint",
    "CheckpointMismatch",
    "Frames",
    "ModelState",
    "Run",
    "Task",
    "check_folder",
    "from_frames",
    "load",
    "model_from",
    "modules_table",
    "npz_arrays",
    "read_header",
    "read_like",
    "save",
    "settings_from",
    "settings_of",
    "state_of",
    "summary_of",
    "summary_table",
    "to_frames",
    "write_cohort",
]
