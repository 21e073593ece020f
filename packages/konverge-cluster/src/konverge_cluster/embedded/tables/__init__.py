"""Objects as rows of tables, the way ``kubectl get`` shows them.

The server prints: a table has the columns of its kind, and each object is a row of cells. Built-in kinds have columns
and cells of their own, with the wording of kube-apiserver v1.36; custom resources show what their definition says.
"""

from konverge_cluster.embedded.tables.table import build_row, list_columns

__all__ = ["build_row", "list_columns"]
