"""The splitting of a watch stream into lines."""

from __future__ import annotations

from konverge.errors import ConnectionFailedError

__all__ = ["MAX_LINE_BYTES", "LineSplitter"]

MAX_LINE_BYTES = 16 * 1024 * 1024
"""The limit of a line: longer than any valid event, because etcd accepts 1.5 MB for an object by default."""


class LineSplitter:
    """A splitter of chunks into whole lines without their newlines; it keeps an unfinished line for the next chunk.

    Each byte is inspected once, for any size of chunks: the pieces of an unfinished line are joined when it ends.

    Args:
        max_line_bytes: The maximum length of a line; a longer one is an error.
    """

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._pieces: list[bytes] = []
        self._waiting = 0

    @property
    def unfinished(self) -> bool:
        """True if the splitter keeps part of a line."""
        return self._waiting > 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk and return the lines that it completes; empty lines are left out.

        Raises:
            konverge.errors.ConnectionFailedError: A line is too long. The stream cannot be used any more.
        """
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces.clear()
            self._waiting = 0
        if rest:
            self._pieces.append(rest)
            self._waiting += len(rest)
        longest = max(self._waiting, max(map(len, lines), default=0))
        if longest > self._max_line_bytes:
            raise ConnectionFailedError(
                f"watch: the server sent an invalid line: expected at most {self._max_line_bytes} bytes"
            )
        return [line for line in lines if line]
