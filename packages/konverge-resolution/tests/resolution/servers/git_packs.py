"""Packs of git as nobody makes them by accident, and a server that gives them out, however long they are."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.resolution.servers.http_server import Handler, http_server

__all__ = [
    "HostileRepository",
    "build_growing_files",
    "build_lazy_repository",
    "commit",
    "delta",
    "encode_object",
    "object_id",
    "pack",
    "pack_server",
    "tree",
]

COMMIT, TREE, BLOB, DELTA = 1, 2, 3, 7
_NAMES = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}
_PIECE = 65_000
_CAPABILITIES = (b"version 2\n", b"ls-refs\n", b"fetch=shallow filter\n", b"object-format=sha1\n")


def object_id(type_: int, pieces: Sequence[bytes]) -> str:
    """The id of an object; of one that is larger than memory should hold, in pieces."""
    digest = hashlib.sha1(b"%b %d\0" % (_NAMES[type_], sum(map(len, pieces))))
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def tree(*entries: tuple[bytes, bytes, str]) -> bytes:
    """A tree of modes, names and ids."""
    return b"".join(b"%b %b\0%b" % (mode, name, bytes.fromhex(id_)) for mode, name, id_ in entries)


def commit(tree_id: str) -> bytes:
    """A commit of a tree, with no parents."""
    who = b"a <a@example.com> 1767225600 +0000"
    return b"tree %b\nauthor %b\ncommitter %b\n\none\n" % (tree_id.encode(), who, who)


def encode_object(type_: int, pieces: Sequence[bytes]) -> Iterator[bytes]:
    """An object as it stands in a pack."""
    yield _head(type_, sum(map(len, pieces)))
    yield from _deflate(pieces)


def delta(base_id: str, base_bytes: int, copies: int) -> bytes:
    """What makes of an object one that repeats it so many times; stands in a pack as it is."""
    copy = b"\xf0" + base_bytes.to_bytes(3, "little")  # from offset 0, with a length of three bytes
    text = _number(base_bytes) + _number(base_bytes * copies) + copy * copies
    return b"".join([_head(DELTA, len(text)), bytes.fromhex(base_id), *_deflate([text])])


def pack(entries: Iterable[Iterable[bytes]], count: int) -> Iterator[bytes]:
    """A pack that says how many entries it has, whether it has them or not."""
    digest = hashlib.sha1()
    for piece in _pack(entries, count):
        digest.update(piece)
        yield piece
    yield digest.digest()


def build_growing_files(size: int, copies: int) -> tuple[list[Iterable[bytes]], str]:
    """The entries of a file of so many bytes, and of one that repeats it, with the commit that has them."""
    base = [bytes(size)]
    file = object_id(BLOB, base)
    large = object_id(BLOB, base * copies)
    root = tree((b"100644", b"box.yaml", large))
    root_id = object_id(TREE, [root])
    text = commit(root_id)
    entries = [
        encode_object(COMMIT, [text]),
        encode_object(TREE, [root]),
        encode_object(BLOB, base),
        [delta(file, size, copies)],
    ]
    return entries, object_id(COMMIT, [text])


def _pack(entries: Iterable[Iterable[bytes]], count: int) -> Iterator[bytes]:
    yield b"PACK" + (2).to_bytes(4, "big") + count.to_bytes(4, "big")
    for entry in entries:
        yield from entry


def _head(type_: int, size: int) -> bytes:
    first, size = type_ << 4 | size & 15, size >> 4
    return bytes([first | 0x80]) + _number(size) if size else bytes([first])


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _deflate(pieces: Sequence[bytes]) -> Iterator[bytes]:
    packing = zlib.compressobj(1)
    for piece in pieces:
        if made := packing.compress(piece):
            yield made
    yield packing.flush()


@dataclass
class HostileRepository:
    """What a server gives out.

    Args:
        commit: Where its branch ``main`` is.
        answers: The pack of the first fetch, of the second, …; the last one of all that follow.
        references: More lines of the list of references.
        progress: What it says on the way, before each pack.
        port: Where it listens, on the loopback interface.
        asked: How many packs it was asked for.
        bytes_sent: Of packs.
    """

    commit: str
    answers: Sequence[Callable[[], Iterable[bytes]]]
    references: Callable[[], Iterable[bytes]] = tuple
    progress: Callable[[], Iterable[bytes]] = tuple
    port: int = 0
    asked: int = 0
    bytes_sent: int = 0

    @property
    def url(self) -> str:
        return f"http://git.test:{self.port}/boxes.git"


def build_lazy_repository(file: str, answer: Callable[[], Iterable[bytes]]) -> HostileRepository:
    """A repository of one file, ``box.yaml``; the pack with it is the answer when git asks for that object alone."""
    root = tree((b"100644", b"box.yaml", file))
    text = commit(object_id(TREE, [root]))
    first = [list(encode_object(COMMIT, [text])), list(encode_object(TREE, [root]))]
    return HostileRepository(object_id(COMMIT, [text]), [lambda: pack(first, len(first)), answer])


@contextmanager
def pack_server(hostile: HostileRepository) -> Iterator[HostileRepository]:
    """Serve it, by protocol 2."""

    class Answering(Handler):
        def do_GET(self) -> None:
            self._begin("advertisement")
            self.wfile.write(b"001e# service=git-upload-pack\n0000")
            self._lines(_CAPABILITIES)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._begin("result")
            if b"command=ls-refs" in body:
                self._lines([f"{hostile.commit} refs/heads/main\n".encode()], hostile.references())
            else:
                number = min(hostile.asked, len(hostile.answers) - 1)
                hostile.asked += 1
                said = (b"\x02" + each for each in hostile.progress())
                self._lines([b"packfile\n"], said, self._counted(hostile.answers[number]()))

        def _counted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
            for piece in pieces:
                for start in range(0, len(piece), _PIECE):
                    hostile.bytes_sent += min(_PIECE, len(piece) - start)
                    yield b"\x01" + piece[start : start + _PIECE]

        def _begin(self, type_: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", f"application/x-git-upload-pack-{type_}")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True

        def _lines(self, *lines: Iterable[bytes]) -> None:
            for each in lines:
                for line in each:
                    self.wfile.write(b"%04x%b" % (len(line) + 4, line))
            self.wfile.write(b"0000")

    with http_server(Answering) as hostile.port:
        yield hostile
