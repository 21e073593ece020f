"""Credentials of the user of a command, where other programs keep them.

`UserCredentialStore` looks them up when a source requires one: auth files of docker and podman with their credential
helpers, git's credential helpers, netrc, the agent and configuration of ssh. They go only to hosts that the user named:
neither a fetched definition nor a lock file can select one. Each lookup is logged with the place of the credential and
never with its value. An unusable place is a warning, as for docker and git; the source then reports what it requires.
"""

from konverge_resolution._internal.user_credentials.credential_store import UserCredentialStore

__all__ = ["UserCredentialStore"]
