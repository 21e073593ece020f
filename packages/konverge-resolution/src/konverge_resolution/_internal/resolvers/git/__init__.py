"""Resolver of files in git repositories without a clone: it fetches a commit without its files, then the one file.

Git runs as a program that may be compromised by the server: in a process group of its own, with limits on memory, files
and output. Its whole configuration comes from this package, not from the machine. It connects only to checked
addresses, and reads from its object store, never from files of a work tree. Closing one pipe ends all of its processes.

The parameters of a reference (`parameters`) have one reading only (`remotes`, `revisions`). They become git's arguments
(`commands`), which run with limits (`process_runner`, `repository`). The output becomes a file (`command_output`) or an
error (`failures`). With ``repo`` instead of ``url``, the server's API is used (`scm`).
"""

from konverge_resolution._internal.resolvers.git.resolver import GitResolver

__all__ = ["GitResolver"]
