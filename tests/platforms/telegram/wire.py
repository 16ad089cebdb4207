"""Between HTTP bodies and aiogram's method models.

Invariants: a field that aiogram knows is judged by its type there, whether it came as JSON, in a form, in a multipart
form or in the address; what does not fit is refused in Telegram's words.
"""

from __future__ import annotations

import json
from types import UnionType
from typing import Any, Union, get_args, get_origin

import aiogram.methods
from aiogram.methods import SetWebhook, TelegramMethod
from aiohttp import web
from aiohttp.multipart import BodyPartReader, MultipartReader
from pydantic import BaseModel, ValidationError

from tests.platforms.telegram.updates import JSON, Refused

METHODS: dict[str, type[TelegramMethod[Any]]] = {
    model.__api_method__.lower(): model
    for model in vars(aiogram.methods).values()
    if isinstance(model, type) and issubclass(model, TelegramMethod) and model is not TelegramMethod
}

#: Telegram's words for a field it can't read; of others it says that the request is wrong.
_UNREADABLE = {
    "chat_id": "chat_id is empty",
    "text": "message text is empty",
    "message_id": "message identifier is not specified",
    "reply_markup": "can't parse reply keyboard markup JSON object",
    "entities": "can't parse entities: can't parse MessageEntity",
    "callback_query_id": "query is too old and response timeout expired or query ID is invalid",
    "commands": "can't parse commands JSON object",
}


async def read(request: web.Request) -> tuple[dict[str, Any], dict[str, tuple[str, bytes]]]:
    """A request's fields and its files (name, bytes), wherever they stand. Raises `Refused` for a body that is none."""
    fields: dict[str, Any] = dict(request.query)
    files: dict[str, tuple[str, bytes]] = {}
    if not request.can_read_body:
        return fields, files
    if request.content_type == "application/json":
        try:
            body = await request.json()
        except ValueError as error:
            raise Refused(400, "Bad Request: can't parse JSON object") from error
        if not isinstance(body, dict):
            raise Refused(400, "Bad Request: expected an Object")
        return fields | body, files
    if request.content_type.startswith("multipart/"):
        reader = await request.multipart()
        async for part in reader:
            if isinstance(part, MultipartReader) or part is None or part.name is None:
                continue
            await _take(part, fields, files)
        return fields, files
    form = await request.post()
    return fields | {name: value for name, value in form.items() if isinstance(value, str)}, files


def call(model: type[TelegramMethod[Any]], fields: dict[str, Any]) -> TelegramMethod[Any]:
    """The method with its arguments. Raises `Refused` for what does not fit."""
    typed = {name: _typed(model, name, value) for name, value in fields.items()}
    if model is SetWebhook:
        typed.setdefault("url", "")  # aiogram leaves out what is empty; no address at all removes the webhook
    try:
        return model.model_validate(typed)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise Refused(400, f"Bad Request: {_UNREADABLE.get(name, f'wrong {name} specified')}") from error


def plain(value: Any) -> Any:
    """A value of aiogram's as the JSON of the Bot API, without what is not set."""
    if isinstance(value, BaseModel):
        dumped = value.model_dump(mode="json", exclude_none=True, exclude_defaults=True, warnings=False, by_alias=True)
        # Type tags are defaults of their models.
        return {**{name: getattr(value, name) for name in ("type",) if hasattr(value, name)}, **dumped}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def answer(result: Any) -> JSON:
    return {"ok": True, "result": result}


def refusal(refused: Refused) -> JSON:
    envelope: JSON = {"ok": False, "error_code": refused.code, "description": refused.description}
    if refused.parameters:
        envelope["parameters"] = refused.parameters
    return envelope


async def _take(part: BodyPartReader, fields: dict[str, Any], files: dict[str, tuple[str, bytes]]) -> None:
    assert part.name is not None
    data = bytes(await part.read(decode=True))
    if part.filename is None:
        fields[part.name] = data.decode()
    else:
        files[part.name] = (part.filename, data)
        # A file may be named by `attach://`, or stand in its field itself.
        fields.setdefault(part.name, f"attach://{part.name}")


def _typed(model: type[TelegramMethod[Any]], name: str, value: Any) -> Any:
    """A form's text as the JSON it holds, where the field is no text."""
    if name in ("chat_id", "user_id") and isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    known = model.model_fields.get(name)
    if not isinstance(value, str) or known is None or str in _alternatives(known.annotation):
        return value
    if value.startswith(("{", "[")):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _alternatives(annotation: Any) -> set[Any]:
    if get_origin(annotation) in (Union, UnionType):
        return {one for part in get_args(annotation) for one in _alternatives(part)}
    return {annotation}
