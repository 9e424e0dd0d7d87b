"""The experiments of the paper, with additional controls; run by `netbic reproduce`."""

from reproduction.run import PARTS, reproduce

__all__ = ["PARTS", "reproduce"]
