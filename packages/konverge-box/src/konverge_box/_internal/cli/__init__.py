"""The command line of this package: ``konverge box``, and the box files of ``konverge run``.

`konverge.cli` finds the commands by the entry points ``konverge.commands``.
"""
