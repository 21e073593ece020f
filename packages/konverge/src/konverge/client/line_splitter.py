"""Cutting a watch stream into lines."""

from __future__ import annotations

from konverge.errors import ConnectionFailedError

__all__ = ["MAX_LINE_BYTES", "LineSplitter"]

MAX_LINE_BYTES = 16 * 1024 * 1024
"""Longer than any event of an honest server: etcd takes 1.5 MB an object by default."""


class LineSplitter:
    """Chunks in, whole lines out, without their newlines; what is left waits for the next chunk.

    Each byte is looked at once however the chunks fall: the pieces of an unfinished line are joined when it ends.

    Args:
        max_line_bytes: How long a line may be; a server that sends a longer one is cut off.
    """

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._pieces: list[bytes] = []
        self._waiting = 0

    @property
    def unfinished(self) -> bool:
        """Tell whether part of a line is waiting for its end."""
        return self._waiting > 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take a chunk and give the lines that it completes; empty lines are left out.

        Raises:
            konverge.errors.ConnectionFailedError: A line is too long. The stream is of no use any more.
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
                f"the server sent a line of more than {self._max_line_bytes} bytes in a watch: giving up on that stream"
            )
        return [line for line in lines if line]
