"""Enrichment: whether modules hold more edges than chance would put there."""

from netbic.enrichment.edges import edges

__all__ = ["edges"]
