"""Resolver ``disk``: a file below a local directory, for development without an upload.

Only the user of a program can name the directory: ``--directory`` on the command line, ``directory`` of a `LocalSetup`.
No resolver of that name exists in a cluster. Records and policies name the file by ``disk://local/`` and its path below
the directory, so a lock file contains no path of one machine.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from konverge._internal.suggestions import did_you_mean
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.parameter_checks import build_param_error, check_names, get_text
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest, Parameters
from konverge_resolution._internal.relative_references import join_path
from konverge_resolution._internal.resolved_content import Provenance, ResolvedContent
from konverge_resolution._internal.resolver import FetchRequest, Parameter, ParameterRole, Setting

__all__ = ["DiskResolver"]

_MAX_PATH = 1000
_MAX_NAMES = 1000
"""Maximum number of file names that are compared for a suggestion."""


class DiskResolver:
    """Reads one file below a local directory.

    Args:
        directory: The directory; no path leads out of it.
    """

    name = "disk"
    reads = ()
    parameters: Mapping[str, Parameter] = {
        "path": Parameter("Path of the file below the directory", required=True),
        "digest": Parameter(
            "Expected digest of the content: sha256: or sha512: and hexadecimal digits",
            role=ParameterRole.CONTENT_DIGEST,
        ),
    }
    settings: Mapping[str, Setting] = {}

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def validate(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        """Return the parameters with the path in one spelling.

        Raises:
            ResolutionError: ``InvalidParams`` with the name of the parameter.
        """
        check_names(params, self.parameters)
        texts = {name: get_text(params, name).strip() for name in params}
        if not texts.get("path"):
            raise build_param_error("path", "expected the path of a file, found none")
        if len(texts["path"]) > _MAX_PATH:
            raise build_param_error("path", f"expected at most {_MAX_PATH} characters, found {len(texts['path'])}")
        try:
            validated = {**texts, "path": join_path("", texts["path"])}
        except ResolutionError as error:
            raise error.with_message(f"parameter 'path': {error.message}") from None
        if "digest" in validated:
            try:
                validated["digest"] = str(Digest.parse(validated["digest"]))
            except ValueError as error:
                raise build_param_error("digest", str(error)) from None
        return validated

    def spell_parameter(self, name: str, value: str) -> Sequence[str]:
        """Return the spellings of a value, as policies compare it."""
        try:
            return (join_path("", value),) if name == "path" else (value,)
        except ResolutionError:
            return (value,)

    def source_uri(self, params: Parameters, settings: Mapping[str, str]) -> str:
        """Return ``disk://local/`` and the path below the directory."""
        return f"disk://local/{quote(str(params['path']))}"

    def is_pinned(self, params: Parameters) -> bool:
        """Tell whether the parameters have a digest."""
        return "digest" in params

    def resolve_relative(self, params: Parameters, path: str) -> Parameters:
        """Return the parameters of another file of the directory.

        Raises:
            ResolutionError: ``InvalidParams``: the path leaves the directory.
        """
        return {"path": join_path(str(params["path"]), path)}

    async def pin(self, fetch: FetchRequest) -> Parameters | None:
        """Return None, because a lookup costs as much as reading the file."""
        return None

    async def resolve(self, fetch: FetchRequest) -> ResolvedContent:
        """Read the file.

        Raises:
            ResolutionError: There is no such file, it leads out of the directory, or it has another digest.
        """
        uri, path = self.source_uri(fetch.params, fetch.settings), str(fetch.params["path"])
        # In a thread: the directory can be on a slow network file system.
        data = await asyncio.to_thread(self._read, uri, path, fetch.max_bytes)
        digest = Digest.of(data)
        if "digest" in fetch.params:
            expected = Digest.parse(str(fetch.params["digest"]))
            if not expected.matches(data):
                raise ResolutionError(Reason.DIGEST_MISMATCH, f"{uri}: {expected.describe_mismatch(data)}")
        return ResolvedContent(
            data,
            Provenance(uri, {digest.algorithm: digest.hex}, path),
            pinned={"digest": str(digest), **fetch.params},
        )

    def _read(self, uri: str, path: str, max_bytes: int) -> bytes:
        try:
            root = self._directory.resolve(strict=True)
            # Links within the directory are followed, and the target is opened without following any.
            target = (root / path).resolve(strict=True)
            if not target.is_relative_to(root):
                raise ResolutionError(Reason.DENIED, f"{uri}: a link leads out of directory {self._directory}")
            descriptor = _open_below(root, target.relative_to(root))
            with open(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise ResolutionError(Reason.UNSUPPORTED_CONTENT, f"{uri}: expected a file, found another kind")
                data = file.read(max_bytes + 1)
        except (FileNotFoundError, NotADirectoryError):
            raise ResolutionError(Reason.NOT_FOUND, f"{uri}: {self._describe_absence(path)}") from None
        except (OSError, RuntimeError) as error:
            raise _build_error(uri, error) from None
        if len(data) > max_bytes:
            raise ResolutionError(Reason.TOO_LARGE, f"{uri}: expected at most {max_bytes} bytes, found more")
        return data

    def _describe_absence(self, path: str) -> str:
        """Describe a missing file with a similar name of the same directory."""
        name = Path(path).name
        try:
            with os.scandir((self._directory / path).parent) as entries:
                names = [entry.name for entry in itertools.islice(entries, _MAX_NAMES)]
        except OSError:
            names = []
        return f"directory {self._directory} has no such file{did_you_mean(name, names)}"


def _open_below(root: Path, path: Path) -> int:
    """Open a file below a directory without following links, so that a link made meanwhile leads nowhere else.

    Raises:
        OSError: The file cannot be opened.
    """
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in path.parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            os.close(directory)
            directory = below
        # Without O_NONBLOCK, a pipe without a writer would wait for one.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(path.name or ".", flags, dir_fd=directory)
    finally:
        os.close(directory)


def _build_error(uri: str, error: OSError | RuntimeError) -> ResolutionError:
    if isinstance(error, RuntimeError) or error.errno == errno.ELOOP:  # a circle of links; Python 3.13 raises OSError
        return ResolutionError(Reason.DENIED, f"{uri}: expected a file, found a circle of links")
    if isinstance(error, IsADirectoryError):
        return ResolutionError(Reason.UNSUPPORTED_CONTENT, f"{uri}: expected a file, found a directory")
    return ResolutionError(Reason.DENIED, f"{uri}: the file cannot be read: {error.strerror}; check its permissions")
