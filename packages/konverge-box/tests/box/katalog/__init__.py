"""Katalogs as boxes."""
