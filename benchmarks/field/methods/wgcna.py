"""Weighted correlation network analysis (R package WGCNA 1.72-1, R 4.2.2; Langfelder and Horvath 2008).

It needs `Rscript` and Debian 12's package r-cran-wgcna. The settings are those of the authors' tutorial (network
construction in one step): an unsigned network, unsigned topological overlap, minModuleSize=30, mergeCutHeight=0.25,
reassignThreshold=0, pamRespectsDendro=FALSE, and maxBlockSize=5000, the default. The power is the estimate of
pickSoftThreshold; without an estimate, it is that of the authors' FAQ for the number of samples. It chooses the number
of modules. Genes that `goodSamplesGenes` rejects are left out, as in the tutorial. Members are the genes of a colour
other than grey; scores are the module eigengenes.
"""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from problem import Found, sets_to_weights

NAME, ENVIRONMENT, CHOOSES = "WGCNA", "netbic", True
SCRIPT = """
suppressMessages(library(WGCNA))
options(stringsAsFactors = FALSE)
size <- as.integer(commandArgs(TRUE))
n <- size[1]
X <- matrix(readBin("X", "double", n * size[2]), n)
dimnames(X) <- list(paste0("s", seq_len(n)), paste0("g", seq_len(size[2])))
good <- goodSamplesGenes(X, verbose = 0)$goodGenes
X <- X[, good]
power <- pickSoftThreshold(X, powerVector = c(1:10, seq(12, 20, 2)), verbose = 0)$powerEstimate
if (is.na(power)) power <- if (n < 20) 9 else if (n < 30) 8 else if (n < 40) 7 else 6
net <- blockwiseModules(X, power = power, networkType = "unsigned", TOMType = "unsigned", maxBlockSize = 5000,
                        minModuleSize = 30, reassignThreshold = 0, mergeCutHeight = 0.25, numericLabels = TRUE,
                        pamRespectsDendro = FALSE, saveTOMs = FALSE, nThreads = 1, verbose = 0)
labels <- setdiff(sort(unique(net$colors)), 0)
colours <- integer(size[2])
colours[good] <- as.integer(net$colors)
writeBin(colours, "labels")
writeBin(as.double(unlist(net$MEs[sprintf("ME%d", labels)])), "eigengenes")
"""


def run(problem):
    n, p = problem.X.shape
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "script.R").write_text(SCRIPT)
        problem.X.T.astype(float).tofile(folder / "X")
        subprocess.run(["Rscript", "script.R", str(n), str(p)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        labels = np.fromfile(folder / "labels", np.int32)
        eigengenes = np.fromfile(folder / "eigengenes").reshape(-1, n).T
    members = labels == np.setdiff1d(labels, 0)[:, None]
    return Found(sets_to_weights(problem.X, members), members, eigengenes)
