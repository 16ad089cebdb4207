"""/link and /unlink: which accounts are one person.

Invariants: asked and answered in private chats only; nothing is linked before the one who gave a code and the one who
made it have both said yes, each to a question that names the other and says what follows; no name is told for a code
that is not right; a word that may mean something else than yes links nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from channels.base import Button, Place
from gateway.catalogue import CATALOGUE
from gateway.commands.call import Asking, Call, excerpt
from gateway.delivery import pieces
from gateway.policy import code_in
from gateway.questions import buttons, is_alone
from gateway.texts import Texts, spoken
from memory.service import Account, Desk, Linking, Note, Party, Piece, Question

#: Purposes of questions: to the one who gave a code, to the one who made it, and before an account is taken out.
JOIN, LINK, UNLINK = "join", "link", "unlink"
_YES_NO = ("yes", "no")
#: Letters shown of a name.
_NAME = 60
_NUMBER = re.compile("[1-9][0-9]{0,2}")


async def link(call: Call) -> None:
    privacy, texts, given = call.memory.privacy, call.texts, code_in(call.arguments)
    if call.inbound.chat_kind != "private":
        if given is None:
            await call.say(texts("link.private"))
            return
        await privacy.spoil(given)
        await call.say(texts("link.spoilt"))
    elif given is not None:
        await _give(call, given)
    elif call.arguments:
        await call.say(texts("link.wrong"))
    else:
        code = call.new_code()
        until = await privacy.open_code(call.context, code)
        told = texts("link.code", code=code, until=texts.moment(until))
        await privacy.act(call.context, call.inbox_id, lambda linking: [_here(call, _lapsed(call, linking) + told)])


async def bare_code(call: Call) -> bool:
    """Take a message of nothing but a code, as `/link` does, if it is an open one; False when it is ordinary talk."""
    code = None if call.inbound.forwarded else code_in(call.inbound.text)
    if code is None or await call.memory.privacy.maker(code) is None:
        return False
    await link(replace(call, arguments=code))
    return True


async def _give(call: Call, code: str) -> None:
    """Take a code and ask whether to go on with the one who made it."""
    maker = await call.memory.privacy.maker(code)
    barred = maker is not None and await _is_barred(call, maker)

    def act(linking: Linking) -> list[Note]:
        before = _lapsed(call, linking)
        given = linking.take_code(code)
        if given.outcome != "fits":
            return [_here(call, before + call.texts(f"link.{given.outcome}"))]
        if maker is None or barred:
            return [_here(call, before + call.texts("link.wrong"))]
        if not maker.present:
            return [_here(call, before + call.texts("link.away"))]
        payload = {"account": given.identity_id, "session": given.session_id}
        question = linking.ask(JOIN, payload, given.identity_id, choices=_YES_NO, preset="no")
        both = [*linking.accounts(), *linking.accounts(given.identity_id)]
        text = call.texts("link.join", account=_called(call.texts, maker.account), list=_listed(call.texts, both))
        return [_here(call, before + text, buttons(question, call.texts, alone=True))]

    await call.memory.privacy.act(call.context, call.inbox_id, act)


def _lapsed(call: Call, linking: Linking) -> str:
    """A line about the link that was begun before, where nobody has answered in time; told once, by no clock."""
    return f"{call.texts('link.lapsed')}\n" if linking.lapsed(asked=JOIN, waiting=LINK) else ""


async def answer_join(call: Call, question: Question, taken: str) -> None:
    """The one who gave a code wants to go on, or not: then the one who made it is asked."""
    maker = await _other_side(call, question)
    barred = await _is_barred(call, maker)

    def act(linking: Linking) -> list[Note]:
        if not linking.settle(question, taken):
            return [_here(call, call.texts("answer.over"))]
        if taken != "yes":
            return [_here(call, call.texts("link.not_given"))]
        if barred or not maker.present:
            return [_here(call, call.texts("link.away"))]
        if not linking.is_as_asked(question, maker.account.id):
            return [_here(call, call.texts("link.changed"))]
        me = linking.account()
        payload = {"account": me.id, "session": call.context.session.id}
        asked = linking.ask(LINK, payload, maker.account.id, choices=_YES_NO, preset="no", of=maker)
        theirs = _texts_of(call, maker.account)
        both = [*linking.accounts(maker.account.id), *linking.accounts()]
        text = theirs("link.ask", account=_called(theirs, me), list=_listed(theirs, both))
        until = call.texts.moment(linking.until)
        return [
            _here(call, call.texts("link.asked", account=_called(call.texts, maker.account), until=until)),
            _there(maker.session_key, text, buttons(asked, theirs, alone=True)),
        ]

    await _act(call, act, wake=[maker.session_key])


async def answer_link(call: Call, question: Question, taken: str) -> None:
    """The one who made a code says whether the one who gave it is to be one person with them."""
    giver = await _other_side(call, question)
    barred = await _is_barred(call, giver)

    def act(linking: Linking) -> list[Note]:
        theirs = _texts_of(call, giver.account)
        me = linking.account()
        if not linking.settle(question, taken):
            return [_here(call, call.texts("answer.over"))]
        if taken != "yes":
            declined = theirs("link.declined", account=_called(theirs, me))
            return [_here(call, call.texts("link.kept_apart")), _there(giver.session_key, declined)]
        if barred:
            return [_here(call, call.texts("link.away"))]
        if not linking.is_as_asked(question, giver.account.id):
            return [_here(call, call.texts("link.changed")), _there(giver.session_key, theirs("link.changed"))]
        linking.link(giver.account.id)
        both = linking.accounts()
        return [
            _here(call, call.texts("link.done", list=_listed(call.texts, both))),
            _there(giver.session_key, theirs("link.done", list=_listed(theirs, both))),
        ]

    await _act(call, act, wake=[giver.session_key])


async def unlink(call: Call) -> None:
    if call.inbound.chat_kind != "private":
        await call.say(call.texts("link.private"))
        return
    accounts = await call.memory.privacy.accounts(call.context)
    if len(accounts) < 2:
        await call.say(call.texts("unlink.none"))
        return
    wanted = call.arguments.strip()
    number = int(wanted) if _NUMBER.fullmatch(wanted) else 0
    if wanted and not 0 < number <= len(accounts):
        await call.say(call.texts("unlink.which", list=numbered(call, accounts)))
        return
    me = call.context.speaker.id
    leaving = accounts[number - 1] if wanted else next(each for each in accounts if each.id == me)

    def act(desk: Desk) -> Asking:
        question = desk.ask(UNLINK, {"account": leaving.id}, choices=_YES_NO, preset="yes")
        text = call.texts("unlink.ask", list=numbered(call, accounts), account=_called(call.texts, leaving))
        return Asking(text=text, buttons=buttons(question, call.texts, alone=True))

    await call.do(act)


async def answer_unlink(call: Call, question: Question, taken: str) -> None:
    """Take an account out, and tell all who were one person until now."""
    leaving_id = int(json.loads(question.payload)["account"])
    woken: list[str] = []

    def act(linking: Linking) -> list[Note]:
        if not linking.settle(question, taken):
            return [_here(call, call.texts("answer.over"))]
        if taken != "yes":
            return [_here(call, call.texts("unlink.kept"))]
        together = linking.accounts()
        leaving = next((each for each in together if each.id == leaving_id), None)
        if leaving is None or len(together) < 2:
            return [_here(call, call.texts("unlink.none"))]
        linking.unlink(leaving.id)
        notes = [_here(call, call.texts("unlink.done", account=_called(call.texts, leaving)))]
        for each in together:
            place = linking.private_place(each.id)
            if each.id == call.context.speaker.id or place is None:
                continue
            theirs = _texts_of(call, each)
            key = "unlink.alone" if each.id == leaving.id else "unlink.done"
            notes.append(_there(place, theirs(key, account=_called(theirs, leaving))))
            woken.append(place)
        return notes

    await _act(call, act, wake=woken)


def numbered(call: Call, accounts: Sequence[Account]) -> str:
    """Accounts as a list, in which the one that is spoken from is marked."""
    lines = []
    for number, each in enumerate(accounts, 1):
        mark = call.texts("account.this") if each.id == call.context.speaker.id else ""
        lines.append(f"{number}. {_called(call.texts, each)}{mark}")
    return "\n".join(lines)


async def _act(call: Call, act: Callable[[Linking], list[Note]], *, wake: Sequence[str]) -> None:
    """Do what the answer to a question means, and have what is said elsewhere sent."""
    edits = call.inbound.message_id if is_alone(call.inbound.pressed or "") else None
    await call.memory.privacy.act(call.context, call.inbox_id, act, edits=edits)
    for session_key in wake:
        call.wake(session_key)


async def _other_side(call: Call, question: Question) -> Party:
    asked = json.loads(question.payload)
    return await call.memory.privacy.party(int(asked["account"]), int(asked["session"]))


async def _is_barred(call: Call, party: Party) -> bool:
    """Whether the other side may not talk to the bot any more."""
    channel = Place.from_session_key(party.session_key).channel
    return await call.door.state(channel, "person", party.account.user_id) == "blocked"


def _here(call: Call, text: str, pressed: Sequence[Button] = ()) -> Note:
    said = f"{text}\n\n{call.aside}" if call.aside else text
    return Note(pieces=pieces(call.channel, said, buttons=pressed))


def _there(session_key: str, text: str, pressed: Sequence[Button] = ()) -> Note:
    """A short plain message for another session, whose channel need not be running."""
    return Note(pieces=(Piece(text=text, buttons=tuple((one.label, one.data) for one in pressed)),), to=session_key)


def _texts_of(call: Call, account: Account) -> Texts:
    return Texts(spoken(account.language, call.agent.spec.language), call.agent.spec.timezone)


def _listed(texts: Texts, accounts: Sequence[Account]) -> str:
    return texts("account.and").join(_called(texts, each) for each in accounts)


def _called(texts: Texts, account: Account) -> str:
    """An account by its name and platform."""
    key = f"platform.{account.platform}"
    platform = texts(key) if key in CATALOGUE[texts.language] else account.platform.capitalize()
    return texts("account", name=excerpt(account.name, _NAME) or account.user_id, platform=platform)
