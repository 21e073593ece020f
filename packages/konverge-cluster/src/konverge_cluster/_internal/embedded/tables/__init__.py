"""Objects as table rows, as ``kubectl get`` prints them.

The server creates the table: it has the columns of the kind, and each object is a row of cells. Built-in kinds have
their own columns and cells with the texts of kube-apiserver v1.36; custom resources use the columns of their
definition.
"""

from konverge_cluster._internal.embedded.tables.table import build_row, list_columns

__all__ = ["build_row", "list_columns"]
