"""Katalogs, the files of another system of operators as data, as boxes.

In goes the text of a Katalog of any generation of its schema, out come the text of a box that does the same, and what
is to be told: what has no counterpart, each with its place, why, and what to do instead; and what was decided where
the two are not quite the same. Nothing is dropped in silence: each mapping is read field by field, and what nobody has
taken is listed. What would change its meaning without a part that has no counterpart, a resource without its
conditions, is not carried over either.

Everything here is pure and bounded; whoever calls it reads files.
"""

from konverge_box.katalog.findings import ConversionNote, Finding
from konverge_box.katalog.importer import KatalogImport, import_katalog

__all__ = ["ConversionNote", "Finding", "KatalogImport", "import_katalog"]
