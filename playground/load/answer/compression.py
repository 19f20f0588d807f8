"""Decompresses a body as it arrives: proxies compress although nobody asked them to."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import brotli

from .sse import StreamError


def decoder(encoding: str, most: int) -> Callable[[bytes], bytes] | None:
    """What decompresses a body of this content-encoding, block by block; None where nothing is compressed.

    It, and this for an encoding that is not known, raise StreamError; it also does once all text together has more
    than `most` bytes.
    """
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip" | "deflate":
            pieces = _inflate()
        case "br":
            decompressor = brotli.Decompressor()
            pieces = lambda block, room: decompressor.process(block, output_buffer_limit=room)  # noqa: E731
        case other:
            raise StreamError("compressed", other[:40])
    size = 0

    def decoded(block: bytes) -> bytes:
        nonlocal size
        try:
            text = pieces(block, most + 1)
        except (zlib.error, brotli.error) as error:
            raise StreamError("compressed", f"{encoding}: {error}") from error
        size += len(text)
        if size > most:
            raise StreamError("answer_too_large", f"{most:,}")
        return text

    return decoded


def _inflate() -> Callable[[bytes, int], bytes]:
    """gzip, or deflate with its header or, as some servers send it, without."""
    inflater: zlib._Decompress | None = None

    def inflated(block: bytes, room: int) -> bytes:
        nonlocal inflater
        if inflater is None:
            inflater = zlib.decompressobj(
                zlib.MAX_WBITS | 32 if block[:1] in (b"\x1f", b"\x78") else -zlib.MAX_WBITS
            )
        return inflater.decompress(block, room)

    return inflated
