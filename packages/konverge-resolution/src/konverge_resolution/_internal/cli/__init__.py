"""The command line of this package: ``konverge resolve`` and ``konverge resolvers``.

`konverge.cli` finds the commands by the entry points ``konverge.commands``.
"""
