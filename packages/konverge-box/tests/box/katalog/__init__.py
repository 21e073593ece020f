"""Conversion of Katalogs to boxes."""
