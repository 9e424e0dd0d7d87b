"""The paper's experiments, each runnable by one command, with the controls that the paper lacks."""

from reproduction.run import PARTS, reproduce

__all__ = ["PARTS", "reproduce"]
