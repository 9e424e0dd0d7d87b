"""Files of any size and layout as Zarr stores of blocks of samples, in bounded memory."""

from netbic.conversion.convert import convert

__all__ = [
    "convert",
]
