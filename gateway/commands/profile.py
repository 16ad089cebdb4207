"""/profile: a person's profile in short, and their settings: language, timezone, name, manner of talking.

Invariants: language and timezone are settings; a fact that tells a timezone sets it, too. A name is a memory like any
other. No part of a person's profile is shown in a group. A group has a manner of its own, which every
member may see and an admin may set.
"""

from __future__ import annotations

from typing import Final

from gateway.commands.call import Call, excerpt
from gateway.commands.memory import keep
from gateway.wording.texts import Texts, means, spoken
from languages import LANGUAGES, Language, part
from memory.browse.browse import FilledSlot
from memory.chat.edits import Edits
from memory.jobs.style import LEAST as MANNER_LEAST
from memory.jobs.style import LIMIT as MANNER_LIMIT
from memory.text.zones import zone_named, zones_like

#: The languages by their own names.
NAMES: Final[dict[Language, str]] = {code: part(code, "language")["name"] for code in LANGUAGES}
_CALLED: Final[dict[str, Language]] = {
    name.casefold(): code
    for code, known in ((code, part(code, "language")) for code in LANGUAGES)
    for name in (code, known["name"], known["english"], *known.get("also", ()))
}
#: Timezones suggested when the typed timezone is not known.
_NAMED = 3


async def profile(call: Call) -> None:
    what, _, value = call.arguments.partition(" ")
    value = value.strip()
    if what.lower() == "manner":
        await _manner(call, value)
    elif call.inbound.chat_kind != "private":
        await call.say(call.texts("profile.private"))
    elif not what:
        await _show(call)
    elif what.lower() not in WHAT or not value:
        await call.say(call.usage_line())
    elif what.lower() == "language":
        await _language(call, value)
    elif what.lower() == "timezone":
        await _timezone(call, value)
    else:
        await keep(call, value, key="name")


#: The settings that can be named after /profile.
WHAT = ("language", "timezone", "name", "manner")


async def _show(call: Call) -> None:
    texts, speaker = call.texts, call.context.speaker
    slots = await call.memory.browse.profile(call.context)
    if not (speaker.manner and call.agent.spec.memory.manner):
        slots = [slot for slot in slots if slot.memory.kind != "directive"]
    rows = [texts("profile.head" if slots else "profile.none")]
    for slot in slots:
        name = slot.memory.key if slot.memory.kind == "profile" else "directive"
        ids = ", ".join(memory.short_id for memory in slot.made_of)
        rows.append(
            texts(
                "profile.slot",
                slot=texts(f"slot.{name}"),
                value=_value(call, slot),
                ids=texts("profile.ids", ids=ids) if ids else "",
            )
        )
    set_to = None if speaker.language is None else spoken(speaker.language, texts.language)
    mine = texts("profile.default", timezone=call.context.timezone)
    rows.append(
        texts(
            "profile.settings",
            language=texts("profile.as_you_write") if set_to is None else NAMES[set_to],
            timezone=mine if speaker.timezone is None else speaker.timezone,
        )
    )
    await call.say("\n".join(rows))


def _value(call: Call, slot: FilledSlot) -> str:
    value = " ".join(slot.memory.value.split())
    bare = {" ".join(memory.value.split()) for memory in slot.made_of}
    if slot.memory.kind != "profile" or bare >= set(value.split("; ")):
        return value
    return "; ".join(dict.fromkeys(map(call.phrase, slot.made_of)))


async def _manner(call: Call, value: str) -> None:
    texts, settings = call.texts, call.agent.spec.memory
    where = "private" if call.context.session.private else "group"
    if not settings.enabled:
        await call.say(texts("memory.off"))
    elif not settings.manner:
        await call.say(texts("manner.agent_off"))
    elif not value:
        await _show_manner(call, where)
    elif where == "group" and not call.admin:
        await call.say(texts("manner.admins"))
    elif (on := means(value, "on")) or means(value, "off"):
        text = texts(f"manner.{'on' if on else 'off'}.{where}")
        await call.done(text, lambda edits: edits.learn_manner(on))
    elif means(value, "auto"):
        await call.do(lambda edits: texts(f"manner.auto.{'done' if edits.leave_manner() else 'same'}"))
    else:

        def set_manner(edits: Edits) -> str:
            kept = edits.set_manner(value)
            if kept is None:
                return texts("manner.too_long", limit=MANNER_LIMIT, count=len(value))
            return texts(f"manner.set.{where}", said=kept.value)

        await call.do(set_manner)


async def _show_manner(call: Call, where: str) -> None:
    texts, context = call.texts, call.context
    if not (context.speaker.manner if context.session.private else context.session.manner):
        await call.say(texts(f"manner.is_off.{where}"))
        return
    slots = await call.memory.browse.profile(context)
    manner = next((slot for slot in slots if slot.memory.kind == "directive"), None)
    if manner is None:
        count = (await call.memory.browse.shelf(context, ("style",), limit=1, page=1)).total
        rows = [texts(f"manner.none.{where}", least=MANNER_LEAST, count=count)]
    elif manner.memory.confirmed:
        date = texts.date(manner.memory.learned_at)
        rows = [texts(f"manner.told.{where}", said=manner.memory.value, date=date, id=manner.memory.short_id)]
    else:
        rows = [texts(f"manner.learned.{where}", said=manner.memory.value)]
        rows += [texts("manner.of", id=style.short_id, said=excerpt(style.value)) for style in manner.made_of]
    await call.say("\n".join([*rows, texts("manner.how")]))


async def _language(call: Call, value: str) -> None:
    if means(value, "auto"):
        wanted, text = None, call.texts("profile.language.auto")
    elif value.casefold() in _CALLED:
        wanted = _CALLED[value.casefold()]
        text = Texts(wanted, call.texts.timezone)("profile.language.done")
    else:
        offered = ", ".join(f"{code} ({name})" for code, name in NAMES.items())
        await call.say(call.texts("profile.language.unknown", typed=excerpt(value), offered=offered))
        return
    await call.done(text, lambda edits: edits.set_language(wanted))


async def _timezone(call: Call, value: str) -> None:
    texts = call.texts
    if means(value, "auto"):
        wanted, text = None, texts("profile.timezone.auto", timezone=call.agent.spec.timezone)
    else:
        wanted = zone_named(value)
        if wanted is None:
            names = ", ".join(zones_like(value, limit=_NAMED))
            near = texts("profile.timezone.near", names=names) if names else ""
            await call.say(texts("profile.timezone.unknown", typed=excerpt(value), near=near))
            return
        there = Texts(texts.language, wanted).moment(call.inbound.sent_at)
        text = texts("profile.timezone.done", timezone=wanted, at=there)
    await call.done(text, lambda edits: edits.set_timezone(wanted))
