"""Conversion of Katalogs, the files of another declarative operator system, to boxes.

The input is the text of a Katalog of any schema generation. The output is the text of a box with the same behavior and
two lists: the findings, each with its position, the reason and an alternative, for everything without a counterpart;
and the notes about fields that behave slightly differently in a box. Nothing is dropped silently: each mapping is read
field by field, and every remaining field is listed. An object whose meaning would change without a part that has no
counterpart, such as a resource without its conditions, is not converted either.

Everything here is pure and bounded; the caller reads files.
"""

from konverge_box._internal.katalog.findings import ConversionNote, Finding
from konverge_box._internal.katalog.importer import KatalogImport, import_katalog

__all__ = ["ConversionNote", "Finding", "KatalogImport", "import_katalog"]
