"""Patches as documents: JSON patches, merge patches, strategic merge patches, and how such patches are made."""
