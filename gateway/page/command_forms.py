"""Forms that are commands of their visitor, and the answers to them.

Invariants: every change is a command of the visitor, with the answer of that command as its receipt. A field becomes a
part of a command only in the form that the command has for it, so no field says another command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

from aiohttp import web

from channels.web import PageItem
from gateway.config.loading import FORMS
from gateway.page.site import Refused, Visit
from memory.errors import NotFound

#: The permissions that a key may be made with.
SCOPES: Final = ("chat,read,write", "read", "read,write", "chat")
#: The characters of a field that are read. A longer text is cut, not refused, so that nobody types it anew.
_MOST: Final = 4000
#: The forms of the fields in a command.
_FIELDS: Final = {
    "id": "m_[a-z0-9]{1,32}", "number": "[0-9]{1,15}", "value": "(?s:.+)", "run": "[0-9]{1,15}", "who": "-?[0-9]{1,20}",
    "job": "[a-z]{1,20}", "agent": "[A-Za-z0-9_-]{1,64}", "scopes": "|".join(SCOPES), "label": ".{1,60}",
    "tag": r"(?=.*\w)[^\n]{1,40}", "ids": r"[ms]_[a-z0-9]{1,32}(?: [ms]_[a-z0-9]{1,32}){0,200}",
    "language": "auto|[a-z]{2}", "zone": "[A-Za-z0-9_+/-]{1,60}", "hours": "[0-9]{1,2}-[0-9]{1,2}",
    "text": r"(?=.*\S)[^\n]{1,500}",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandForm:
    """A form: the path it is sent to, and the command of each of its buttons, which are called "action".

    Names in braces are fields of the form or parts of the path. The answer leads back to the path, or to where `back`
    says for its button. A form about people needs a platform: the terminal has no ids by which to let them in or to
    look at them.
    """

    path: str
    commands: Mapping[str, str]
    back: Mapping[str, str] = field(default_factory=dict)
    admin: bool = False
    about_people: bool = False

    async def say(self, visit: Visit) -> web.StreamResponse:
        """Says the command for the visitor and shows its answer. Raises `Refused` if a field does not fit."""
        action, given = visit.form.get("action", ""), {**visit.form, **visit.path}
        if self.about_people and visit.visitor.is_operator:
            raise Refused(404, "page.nothing_here")
        command = self.commands.get(action, "")
        back = self.back.get(action) or self.path.format(**visit.path)
        fields = {name: given.get(name, "").strip()[:_MOST] for name in re.findall(r"\{(\w+)\}", command)}
        if fields.get("value") == "":
            return visit.to(back)
        unfit = {name for name, text in fields.items() if not re.fullmatch(_FIELDS[name], text)}
        if unfit & visit.path.keys():
            raise Refused(404, "page.nothing_here")
        if not command or unfit:
            raise Refused(400, "page.bad_form")
        items = await _said(visit, text=command.format(**fields))
        if "{id}" in self.path and action != "forget" and (newest := await _newest(visit)) is not None:
            visit.visitors.keep(visit.visitor, items)
            return visit.to(f"/memory/{newest}?done=1")
        return receipt(visit, items, back=back)


COMMAND_FORMS: Final = (
    CommandForm(path="/memory", commands={"": "/remember {value}"}),
    CommandForm(path="/forget", commands={"": "/forget {ids}"}, back={"": "/memory"}),
    CommandForm(
        path="/memory/{id}", back={"forget": "/memory"}, commands={
            "pin": "/memory pin {id}", "unpin": "/memory unpin {id}", "confirm": "/memory confirm {id}",
            "edit": "/memory edit {id} {value}", "forget": "/forget {id}",
            "tag": "/memory tag {id} {tag}", "untag": "/memory untag {id} {tag}",
        },
    ),
    CommandForm(path="/night/{run}", commands={"": "/memory undo {run}"}),
    CommandForm(
        path="/me", commands={
            "out": "/privacy out", "in": "/privacy in", "about_off": "/privacy about off",
            "about_on": "/privacy about on", "delete": "/privacy delete", "export": "/memory export",
            "language": "/profile language {language}", "zone": "/profile timezone {zone}",
            "follow": "/privacy followups on {hours}", "unfollow": "/privacy followups off",
            "manner": "/profile manner {text}", "manner_on": "/profile manner on", "manner_off": "/profile manner off",
            "manner_auto": "/profile manner auto",
            "make": "/keys make {scopes} {label}", "revoke": "/keys revoke {number}",
        },
    ),
    CommandForm(
        path="/reminders", commands={
            "": "/remind {text}", "time": "/remind change {number} {text}", "words": "/remind reword {number} {text}",
            "cancel": "/remind cancel {number}", "done": "/remind done {number}",
        },
    ),
    CommandForm(path="/admin", commands={"": "/backup"}, admin=True),
    CommandForm(path="/admin/jobs", commands={"": "/jobs run {job} {agent}"}, admin=True),
    CommandForm(
        path="/admin/dead", admin=True,
        commands={"retry": "/dead retry {number}", "drop": "/dead drop {number}", "purge": "/dead purge"},
    ),
    CommandForm(
        path="/admin/people", admin=True, about_people=True, commands={
            "look": "/admin memory {who} list", "allow": "/allow {who}", "block": "/block {who}", "pair": "/pair",
        },
    ),
)  # fmt: skip


async def press(visit: Visit) -> web.StreamResponse:
    pressed = {"message_id": visit.form.get("key", "")[:100], "pressed": visit.form.get("data", "")[:64]}
    return receipt(visit, await _said(visit, **pressed), back=safe(visit.form.get("back", "")))


def receipt(visit: Visit, items: list[PageItem], *, back: str) -> web.StreamResponse:
    """Returns the way to the answer's page, so that going back sends no form again, or the file that it brought."""
    file = next((item.file for item in items if item.file is not None), None)
    if file is not None:
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"}
        return web.Response(body=file.data, headers=headers, content_type="application/octet-stream")
    visit.visitors.keep(visit.visitor, items)
    return visit.to(f"/receipt?back={back}")


async def _said(visit: Visit, **said: Any) -> list[PageItem]:
    nonce = visit.form["nonce"].partition(".")[0]
    inbound = visit.visitor.inbound(thread=FORMS, nonce=nonce, language=visit.texts.language)
    return await visit.visitors.answered(visit.visitor, replace(inbound, **said))


async def _newest(visit: Visit) -> str | None:
    """Returns the id of the version that holds now of the memory in the path; None if the memory is gone."""
    visitor, short_id = visit.visitor, visit.path["id"]
    try:
        shown = await visitor.store.memory.browse.shown(visitor.context, short_id)
    except NotFound:
        return None
    return next((each.short_id for each in shown.versions if each.live), short_id)


def safe(back: str) -> str:
    return back if re.fullmatch(r"/[a-z]+(/[a-z0-9_-]+)?", back) else "/memory"
