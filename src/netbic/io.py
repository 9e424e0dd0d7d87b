"""Files: expression matrices, networks and gene sets in, results and checkpoints out.

This module gathers, for users, what `readers`, `study`, `conversion`, `storage` and `files` offer.
"""

from netbic.conversion import convert
from netbic.deprecation import earlier_names
from netbic.errors import InputError
from netbic.files import FolderInUse, finished_record, locked, read_json, read_table, write_json, write_table
from netbic.readers import (
    Expression,
    ExpressionOptions,
    GeneSets,
    Network,
    NetworkOptions,
    NetworkSummary,
    open_expression,
    read_expression,
    read_gene_sets,
    read_network,
    read_sample_info,
)
from netbic.storage import (
    Frames,
    Run,
    check_folder,
    from_frames,
    load,
    modules_table,
    pair_scores_table,
    pairs_table,
    read_again,
    read_like,
    save,
    settings_from,
    settings_of,
    summary_table,
    to_frames,
    weights_table,
    write_cohort,
    write_network,
)
from netbic.study import (
    Alignment,
    Finding,
    MatchingOptions,
    PreparedExpression,
    PreprocessingOptions,
    Study,
    StudyOptions,
    align,
    check_expression,
    open_study,
    prepare,
    scores_by_name,
    scores_table,
)

__all__ = [
    "Alignment",
    "Expression",
    "ExpressionOptions",
    "Finding",
    "FolderInUse",
    "Frames",
    "GeneSets",
    "InputError",
    "MatchingOptions",
    "Network",
    "NetworkOptions",
    "NetworkSummary",
    "PreparedExpression",
    "PreprocessingOptions",
    "Run",
    "Study",
    "StudyOptions",
    "align",
    "check_expression",
    "check_folder",
    "convert",
    "finished_record",
    "from_frames",
    "load",
    "locked",
    "modules_table",
    "open_expression",
    "open_study",
    "pair_scores_table",
    "pairs_table",
    "prepare",
    "read_again",
    "read_expression",
    "read_gene_sets",
    "read_json",
    "read_like",
    "read_network",
    "read_sample_info",
    "read_table",
    "save",
    "scores_by_name",
    "scores_table",
    "settings_from",
    "settings_of",
    "summary_table",
    "to_frames",
    "weights_table",
    "write_cohort",
    "write_json",
    "write_network",
    "write_table",
]

_EARLIER = {"NetworkAccount": "netbic.io.NetworkSummary", "Prepared": "netbic.io.PreparedExpression"}
__getattr__ = earlier_names("netbic.io", _EARLIER)


def __dir__() -> list[str]:
    return sorted(__all__)
