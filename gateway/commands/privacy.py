"""/privacy: what is kept, for how long, where, who looked at it; and the opt-outs from being learned or kept.

Invariants: a person's own data is shown in their private chat, or for their eyes alone. Every look of an admin can be
seen; a look at a group's memory can be seen in that group. All data of a person is erased only on the word yes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

from agents.spec import ModelSpec
from gateway.commands import pages
from gateway.commands.call import Actions, Asking, Call, by_action, excerpt
from gateway.commands.forget import left_on_server
from gateway.commands.people import numbered
from gateway.internet.tools import NAMES as WEB_TOOLS
from gateway.pipeline.questions import buttons
from memory.chat.edits import Edits
from memory.forgetting.choose import Selection
from memory.forgetting.forgetting import Receipt
from memory.people.privacy import AuditEntry, Kept
from memory.reminders.followups import HOURS as FOLLOW_UP_HOURS
from memory.store.questions import Question

#: Purpose of the question before all data of a person is erased.
DELETE = "delete_me"
#: Admins' looks on one page.
_LOOKS = 10


async def privacy(call: Call) -> None:
    actions: Actions = {
        "": ("", _show),
        "out": ("", partial(_opt, on=False)),
        "in": ("", partial(_opt, on=True)),
        "about": ("on|off", _opt_about),
        "followups": (r"on|off|on\s+\d{1,2}\s*[-–]\s*\d{1,2}", _follow_up),
        "looks": ("([1-9][0-9]{0,4})?", _list_looks),
        "delete": ("", _delete),
    }
    await by_action(call, actions)


async def _show(call: Call, _rest: str) -> None:
    kept = await call.memory.privacy.kept(call.context, looks_shown=_LOOKS)
    if call.inbound.chat_kind == "private":
        lines = [
            _amount(call, kept),
            *await _where(call),
            _model(call),
            *_tools(call),
            *await _keys(call),
            *_wishes(call),
            *_accounts(call, kept),
        ]
        await call.say("\n".join([*lines, *_looks(call, kept, 1), call.texts("privacy.how")]))
        return
    observed = [call.texts("privacy.observed")] if call.observes else []
    lines = [_kinds(call, kept), _model(call), *_tools(call), _here(call), *observed, *_looks(call, kept, 1)]
    lines.append(call.texts("privacy.yours"))
    await replace(call, discreet=False).say("\n".join(lines))


async def _list_looks(call: Call, typed: str) -> None:
    page = int(typed or 1)
    kept = await call.memory.privacy.kept(call.context, looks_shown=_LOOKS, looks_before=(page - 1) * _LOOKS)
    pages_of = max(1, -(-kept.all_looks // _LOOKS))
    if page > pages_of:
        await call.say(pages.beyond(call, page, pages_of))
        return
    turns = pages.turning_by(call, page, pages_of, lambda to: f"/privacy looks {to}")
    await pages.show(replace(call, discreet=False), _looks(call, kept, page), turns)


async def _opt(call: Call, _rest: str, *, on: bool) -> None:
    await call.memory.privacy.learn_from(call.context, on)
    await call.say(call.texts("privacy.in" if on else "privacy.out"))


async def _opt_about(call: Call, wish: str) -> None:
    on = wish.lower() == "on"
    await call.memory.privacy.learn_about(call.context, on)
    await call.say(call.texts("privacy.about_on" if on else "privacy.about_off"))


async def _follow_up(call: Call, wish: str) -> None:
    """Switches questions about how plans went on or off; they are asked in the private chat alone."""
    if wish.lower() == "off":
        await stop_follow_ups(call)
        return
    begin, end = map(int, re.findall(r"\d+", wish) or FOLLOW_UP_HOURS.split("-"))
    if not begin < end <= 24:
        await call.say(call.usage_line())
        return
    await call.memory.privacy.follow_up(call.context, f"{begin}-{end}")
    await call.say(call.texts("followup.on", begin=begin, end=end))


async def stop_follow_ups(call: Call) -> None:
    await call.memory.privacy.follow_up(call.context, "")
    await call.say(call.texts("followup.off"))


async def _delete(call: Call, _rest: str) -> None:
    if call.inbound.chat_kind != "private":
        await call.say(call.texts("privacy.delete_private"))
        return
    kept = await call.memory.privacy.kept(call.context, looks_shown=0)
    going = await call.memory.forgetting.preview_of(call.context, Selection(what="me"), limit=0)

    def ask(edits: Edits) -> Asking:
        question = edits.ask(DELETE, {}, choices=("yes", "no"), preset="no")
        text = call.texts(
            "privacy.delete_ask",
            messages=going.messages,
            memories=going.memories,
            files=kept.said.files,
            list=numbered(call, kept.accounts),
        )
        return Asking(text=text, buttons=buttons(question, call.texts, alone=True))

    await call.do(ask)


async def answer_delete(call: Call, question: Question, taken: str) -> None:
    if taken != "yes":
        await call.decline(question, taken, "privacy.delete_kept")
        return
    receipt = await call.memory.forgetting.forget(
        call.context, call.inbox_id, question, Selection(what="me"), how="words"
    )
    if receipt is None:
        await call.say(call.texts("answer.over"))
        return
    await hand_out(call, receipt)


async def hand_out(call: Call, receipt: Receipt) -> None:
    await call.do(lambda _edits: _receipt(call, receipt), in_place=call.on_question)


def _receipt(call: Call, receipt: Receipt) -> str:
    texts = call.texts
    lines = [
        texts(
            "privacy.deleted",
            messages=receipt.messages,
            replies=receipt.replies,
            memories=receipt.memories,
            files=receipt.files,
        )
    ]
    if not receipt.scrubbed:
        lines.append(texts("privacy.pending"))
    if receipt.scrubbed and receipt.on_server:
        lines.append(left_on_server(texts, receipt))
    elif receipt.backups_until is not None:
        lines.append(texts("privacy.backups_until", date=texts.date(receipt.backups_until)))
    speaker = call.context.speaker
    if not speaker.learning or not speaker.about:
        lines.append(texts("privacy.stays_out"))
    return "\n".join([*lines, texts("privacy.stays")])


def _amount(call: Call, kept: Kept) -> str:
    since = call.texts("privacy.nothing") if kept.since is None else call.texts.date(kept.since)
    messages = call.texts(
        "privacy.said",
        here=kept.said.here,
        elsewhere=kept.said.elsewhere,
        groups=kept.said.groups,
        files=kept.said.files,
        since=since,
    )
    reminders = [call.texts("privacy.reminders", count=kept.reminders)] if kept.reminders else []
    return "\n".join([messages, _kinds(call, kept), *reminders])


def _kinds(call: Call, kept: Kept) -> str:
    texts = call.texts
    counted = ", ".join(f"{texts(f'privacy.kind.{kind}')} {count}" for kind, count in kept.kinds.items())
    return texts("privacy.kinds", kinds=counted or "0", past=kept.past)


async def _where(call: Call) -> list[str]:
    texts = call.texts
    where = texts("privacy.where")
    if call.admin:
        where = texts("privacy.where_admin", path=(await call.memory.stats.status(call.context)).path)
    return [*_until(call), where]


def _copies(call: Call) -> str:
    texts, backups = call.texts, call.memory.backups
    if not backups.on_server:
        return texts("privacy.backups", days=backups.keep_days)
    if not backups.server_days:
        return texts("privacy.backups_server")
    return texts("privacy.backups_server_days", days=backups.server_days)


def _until(call: Call) -> list[str]:
    texts, keeping, session = call.texts, call.memory.keeping, call.agent.spec.session
    words = texts("privacy.until") if keeping.transcript_days is None else ""
    exports = "privacy.exports" if keeping.export_days is None else "privacy.exports_days"
    lines = [
        words or texts("privacy.until_days", days=keeping.transcript_days),
        _copies(call),
        texts(exports, days=keeping.export_days),
        texts("privacy.left", days=keeping.left_chat_days),
    ]
    if session.idle_hours is not None:
        lines.append(texts("privacy.anew_idle", hours=f"{session.idle_hours:g}"))
    if session.at is not None:
        lines.append(texts("privacy.anew_at", time=session.at))
    return lines


def _place(model: ModelSpec) -> str:
    """Returns the host of a model's server; the name of its provider if only the package that brings it knows."""
    return urlsplit(model.base_url).hostname or model.provider


def _model(call: Call) -> str:
    spec = call.agent.spec
    models = [f"{model.model} ({_place(model)})" for model in spec.models if model.provider != "offline"]
    reading = [
        f"{model.model} ({_place(model)})"
        for model in spec.background.models
        if model.provider != "offline" and spec.memory.enabled
    ]
    named = list(dict.fromkeys([*models, *reading]))
    return call.texts("privacy.model", models=", ".join(named)) if named else call.texts("privacy.no_model")


def _tools(call: Call) -> list[str]:
    places = [f"{source.name} ({source.where})" for source in call.agent.sources if source.where]
    places += [name for name in call.agent.spec.tools if name in WEB_TOOLS]
    return [call.texts("privacy.tools", places=", ".join(places))] if places and not call.agent.offline else []


async def _keys(call: Call) -> list[str]:
    made = await call.memory.keys.of(call.context)
    labels = ", ".join(excerpt(key.label) for key in made)
    return [call.texts("privacy.keys", keys=labels)] if made else []


def _here(call: Call) -> str:
    learning = call.agent.spec.memory.enabled and call.context.session.learning
    return call.texts("privacy.here_on" if learning else "privacy.here_off")


def _wishes(call: Call) -> list[str]:
    speaker, texts = call.context.speaker, call.texts
    begin, _, end = speaker.follow_ups.partition("-")
    return [
        _here(call),
        texts("privacy.learning_on" if speaker.learning else "privacy.learning_off"),
        texts("privacy.telling_on" if speaker.about else "privacy.telling_off"),
        texts("privacy.followups_on", begin=begin, end=end) if end else texts("privacy.followups_off"),
    ]


def _accounts(call: Call, kept: Kept) -> list[str]:
    if len(kept.accounts) < 2:
        return [call.texts("privacy.not_linked")]
    return [call.texts("privacy.linked"), numbered(call, kept.accounts)]


def _looks(call: Call, kept: Kept, page: int) -> list[str]:
    if not kept.looks:
        return [call.texts("privacy.no_looks")]
    lines = [call.texts("privacy.looks", total=kept.all_looks), *(_look(call, look) for look in kept.looks)]
    earlier = kept.all_looks - (page - 1) * _LOOKS - len(kept.looks)
    return [*lines, call.texts("privacy.earlier", count=earlier, page=page + 1)] if earlier else lines


def _look(call: Call, look: AuditEntry) -> str:
    return call.texts(
        "privacy.look",
        date=call.texts.date(look.looked_at),
        name=look.admin_name or str(look.admin_id),
        action=call.texts(f"privacy.action.{look.action}"),
        found=look.found,
    )
