"""Files of git repositories, without a clone: a commit without its files is fetched, and the one file that is wanted.

Git runs as a program that may be hostile to us, because what it talks to may be: in a process group of its own with
bounded memory, files and output, told everything by us and nothing by the machine, connecting only to addresses that
were checked, reading from its store of objects and never from files of a work tree. Closing one pipe ends all of it.

A reference comes in as parameters (`parameters`), is read in one way only (`remotes`, `revisions`), becomes what git is
told (`commands`) and runs (`process_runner`, `repository`); what it prints becomes a file (`command_output`) or a
failure (`failures`). With ``repo`` in place of ``url``, the server's API is asked (`scm`).
"""

from konverge_resolution.resolvers.git.resolver import GitResolver

__all__ = ["GitResolver"]
