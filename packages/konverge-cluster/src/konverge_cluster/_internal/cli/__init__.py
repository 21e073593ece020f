"""The commands that start a cluster: ``konverge local`` and ``konverge demo``.

`konverge.cli` finds the commands by the entry points ``konverge.commands``.
"""
