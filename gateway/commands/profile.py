"""/profile: what is known of a person in short, and what they have set: language, timezone, name, manner of talking.

Invariants: language and timezone are settings and no memories; a name is a memory like any other; nothing of a profile
is shown in a group, whose own manner of talking everybody there may see and an admin may set.
"""

from __future__ import annotations

import difflib
from functools import cache
from zoneinfo import available_timezones

from gateway.commands.call import Call, excerpt
from gateway.commands.memory import keep
from gateway.phrases import Language
from gateway.texts import Texts, spoken
from memory.service import MANNER_LEAST, MANNER_LIMIT, Desk

#: What takes a setting back.
_AUTO = frozenset({"auto", "none", "off", "-", "自动"})
_LANGUAGES: dict[str, Language] = {
    **dict.fromkeys(("en", "english", "英文", "英语"), "en"),
    **dict.fromkeys(("zh", "chinese", "中文", "汉语", "zh-cn"), "zh"),
}
_OFF = frozenset({"off", "关", "关闭"})
_ON = frozenset({"on", "开", "打开"})
#: Timezones that are named when one is not known.
_NAMED = 3


async def profile(call: Call) -> None:
    """/profile: the first word says what to set."""
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


#: What can be set.
WHAT = ("language", "timezone", "name", "manner")


async def _show(call: Call) -> None:
    texts, speaker = call.texts, call.context.speaker
    slots = await call.memory.browsing.profile(call.context)
    if not (speaker.manner and call.agent.spec.memory.manner):
        slots = [slot for slot in slots if slot.memory.kind != "directive"]
    shown = [texts("profile.head" if slots else "profile.none")]
    for slot in slots:
        name = slot.memory.key if slot.memory.kind == "profile" else "directive"
        ids = ", ".join(one.short_id for one in slot.made_of)
        shown.append(
            texts(
                "profile.slot",
                slot=texts(f"slot.{name}"),
                value=" ".join(slot.memory.value.split()),
                ids=texts("profile.ids", ids=ids) if ids else "",
            )
        )
    set_to = None if speaker.language is None else spoken(speaker.language, texts.language)
    mine = texts("profile.default", timezone=call.context.timezone)
    shown.append(
        texts(
            "profile.settings",
            language=texts("profile.as_you_write" if set_to is None else f"profile.language.{set_to}"),
            timezone=mine if speaker.timezone is None else speaker.timezone,
        )
    )
    await call.say("\n".join(shown))


async def _manner(call: Call, value: str) -> None:
    """How the agent talks to this person, or to this group: shown, set in one's own words, left to it, switched."""
    texts, word, settings = call.texts, value.casefold(), call.agent.spec.memory
    where = "private" if call.context.session.private else "group"
    if not settings.enabled:
        await call.say(texts("memory.off"))
    elif not settings.manner:
        await call.say(texts("manner.agent_off"))
    elif not value:
        await _show_manner(call, where)
    elif where == "group" and not call.admin:
        await call.say(texts("manner.admins"))
    elif word in _OFF or word in _ON:

        def switch(desk: Desk) -> str:
            desk.learn_manner(word in _ON)
            return texts(f"manner.{'on' if word in _ON else 'off'}.{where}")

        await call.do(switch)
    elif word in _AUTO:
        await call.do(lambda desk: texts(f"manner.auto.{'done' if desk.leave_manner() else 'same'}"))
    else:

        def say(desk: Desk) -> str:
            kept = desk.set_manner(value)
            if kept is None:
                return texts("manner.too_long", limit=MANNER_LIMIT, count=len(value))
            return texts(f"manner.set.{where}", said=kept.value)

        await call.do(say)


async def _show_manner(call: Call, where: str) -> None:
    texts, context = call.texts, call.context
    if not (context.speaker.manner if context.session.private else context.session.manner):
        await call.say(texts(f"manner.is_off.{where}"))
        return
    slots = await call.memory.browsing.profile(context)
    found = next((slot for slot in slots if slot.memory.kind == "directive"), None)
    if found is None:
        count = (await call.memory.browsing.shelf(context, ("style",), limit=1, page=1)).total
        shown = [texts(f"manner.none.{where}", least=MANNER_LEAST, count=count)]
    elif found.memory.confirmed:
        date = texts.date(found.memory.learned_at)
        shown = [texts(f"manner.told.{where}", said=found.memory.value, date=date, id=found.memory.short_id)]
    else:
        shown = [texts(f"manner.learned.{where}", said=found.memory.value)]
        shown += [texts("manner.of", id=one.short_id, said=excerpt(one.value)) for one in found.made_of]
    await call.say("\n".join([*shown, texts("manner.how")]))


async def _language(call: Call, value: str) -> None:
    if value.casefold() in _AUTO:
        wanted, said = None, call.texts("profile.language.auto")
    elif value.casefold() in _LANGUAGES:
        wanted = _LANGUAGES[value.casefold()]
        said = Texts(wanted, call.texts.timezone)("profile.language.done")
    else:
        await call.say(call.texts("profile.language.unknown", typed=excerpt(value)))
        return

    def act(desk: Desk) -> str:
        desk.set_language(wanted)
        return said

    await call.do(act)


async def _timezone(call: Call, value: str) -> None:
    texts = call.texts
    if value.casefold() in _AUTO:
        wanted, said = None, texts("profile.timezone.auto", timezone=call.agent.spec.timezone)
    else:
        wanted = timezone_named(value)
        if wanted is None:
            names = ", ".join(timezones_like(value, limit=_NAMED))
            near = texts("profile.timezone.near", names=names) if names else ""
            await call.say(texts("profile.timezone.unknown", typed=excerpt(value), near=near))
            return
        there = Texts(texts.language, wanted).moment(call.inbound.sent_at)
        said = texts("profile.timezone.done", timezone=wanted, at=there)

    def act(desk: Desk) -> str:
        desk.set_timezone(wanted)
        return said

    await call.do(act)


def timezone_named(typed: str) -> str | None:
    """The timezone of the IANA list called so, or whose city is, whatever the case; None for none or several."""
    name = _folded(typed)
    if name in _zones():
        return _zones()[name]
    cities = {zone for folded, zone in _zones().items() if folded.rpartition("/")[2] == name}
    return cities.pop() if len(cities) == 1 else None


def timezones_like(typed: str, *, limit: int) -> list[str]:
    """Timezones whose name begins with or holds what is typed, or that are spelled nearly so, the likeliest first."""
    name = _folded(typed)
    zones = _zones()
    held = sorted((folded for folded in zones if name in folded), key=lambda one: (not _begins(one, name), one))
    near = difflib.get_close_matches(name, zones, n=limit, cutoff=0.6) if len(held) < limit else []
    return [zones[folded] for folded in dict.fromkeys([*held, *near])][:limit]


def _begins(zone: str, name: str) -> bool:
    """Whether a timezone or its city begins so."""
    return zone.startswith(name) or zone.rpartition("/")[2].startswith(name)


def _folded(typed: str) -> str:
    return "_".join(typed[:64].casefold().split())


@cache
def _zones() -> dict[str, str]:
    """The system's timezones by their folded names, without those that stand for the machine's own clock."""
    return {zone.casefold(): zone for zone in sorted(available_timezones() - {"localtime", "Factory", "posixrules"})}
