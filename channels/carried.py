"""Attachments that hold their own bytes, for channels to which people send them with the message itself.

Invariant: the bytes stand in the attachment's reference, so they go with the inbox row that holds it.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from channels.base import Attachment, AttachmentKind, ChannelError, TooLarge

#: The prefix of the bytes in a reference.
_BYTES: Final = "b64:"
_KINDS: Final[dict[str, AttachmentKind]] = {"image": "image", "audio": "audio", "video": "video"}


def carrying(name: str, media_type: str, data: bytes | memoryview) -> Attachment:
    kind = _KINDS.get(media_type.partition("/")[0], "file")
    reference = _BYTES + base64.b64encode(data).decode("ascii")
    return Attachment(kind=kind, name=name, media_type=media_type, size=len(data), reference=reference)


def carried(attachment: Attachment, *, limit: int) -> bytes:
    """Returns the bytes that an attachment holds. Raises `TooLarge` above `limit` bytes, else `ChannelError`."""
    if not attachment.reference.startswith(_BYTES):
        raise ChannelError("this attachment has no bytes")
    try:
        data = binascii.a2b_base64(attachment.reference[len(_BYTES) :], strict_mode=True)
    except binascii.Error as exc:
        raise ChannelError("the bytes of this attachment can't be read") from exc
    if len(data) > limit:
        raise TooLarge(f"{attachment.name} has {len(data)} bytes, more than the {limit} that are read")
    return data
