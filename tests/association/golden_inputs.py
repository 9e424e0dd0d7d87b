"""The tables that R and the tests read: simulated ones with ties and missing values, and an excerpt of real data.

`python tests/association/golden_inputs.py FOLDER` writes them for golden.R.
"""

import os
import sys
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
COLUMNS = ["score", "level", "number", "covariate", "stratum", "time", "event"]


def simulated(name: str) -> pd.DataFrame:
    return pd.read_csv(HERE / f"{name}.tsv", sep="\t")


def gse7390(data: Path) -> pd.DataFrame:
    """A probe as the score; grade, age, size and ER status of 198 breast tumours, with times to metastasis."""
    probes = pd.read_parquet(data / "small_breast_gse7390.parquet")
    table = pd.read_csv(data / "small_breast_gse7390_samples.tsv", sep="\t").set_index("sample")
    names = {"grade": "level", "age": "number", "size": "covariate", "er": "stratum"}
    names |= {"metastasis_days": "time", "metastasis_event": "event"}
    scores = probes.iloc[0].astype(float).rename("score")
    return table.rename(columns=names).join(scores)[COLUMNS].reset_index(drop=True)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    tables = {name: simulated(name) for name in ("tied", "small")}
    if "NETBIC_DATA" in os.environ:
        tables["gse7390"] = gse7390(Path(os.environ["NETBIC_DATA"]))
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.tsv", sep="\t", index=False, na_rep="NA")
