"""Files of any size and layout as Zarr stores of blocks of samples, in bounded memory."""

from netbic.conversion.to_zarr import convert

__all__ = [
    "convert",
]
