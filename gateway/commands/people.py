"""/link and /unlink: the accounts of one person.

Invariants: both are asked and answered in private chats only. Nothing is linked before both the person who gave a
code and the person who made it have said yes, each to a question that names the other and says what follows. A wrong
code tells no name. A word that may mean anything but yes links nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from channels.base import Button, Place
from gateway.commands.call import Asking, Call, excerpt
from gateway.pipeline.delivery import pieces
from gateway.pipeline.policy import code_in
from gateway.pipeline.questions import buttons
from gateway.wording.texts import CATALOGUE, Texts, spoken
from memory.chat.edits import Edits
from memory.mailbox.outbox import Part
from memory.people.linking import Linking, Note, Party
from memory.store.people import Account
from memory.store.questions import Question

#: Purposes of questions: to the person who gave a code, to the person who made it, and before an account is taken out.
JOIN, LINK, UNLINK = "join", "link", "unlink"
_YES_NO = ("yes", "no")
#: Characters shown of a name.
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
        await call.say(texts("link.no_code", typed=excerpt(call.arguments)))
    else:
        code = call.new_code()
        until = await privacy.open_code(call.context, code)
        text = texts("link.code", code=code, until=texts.moment(until))
        await privacy.act(call.context, call.inbox_id, lambda linking: [_here(call, _lapsed(call, linking) + text)])


async def bare_code(call: Call) -> bool:
    """Takes a message that holds only an open code, as `/link` does and as a try; False for ordinary talk."""
    code, privacy = None if call.inbound.forwarded else code_in(call.inbound.text), call.memory.privacy
    if code is None:
        return False
    if call.inbound.chat_kind == "private":
        fits = await privacy.is_code(call.context, code)
    else:
        fits = await privacy.maker(code) is not None
    if fits:
        await link(replace(call, arguments=code))
    return fits


async def _give(call: Call, code: str) -> None:
    maker = await call.memory.privacy.maker(code)
    barred = maker is not None and await _is_barred(call, maker)

    def take(linking: Linking) -> list[Note]:
        before = _lapsed(call, linking)
        given = linking.take_code(code)
        if given.outcome != "fits":
            return [_here(call, before + call.texts(f"link.{given.outcome}"))]
        if maker is None or barred:
            return [_here(call, before + call.texts("link.wrong"))]
        if not maker.present:
            return [_here(call, before + call.texts("link.away"))]
        payload = {"account": given.identity_id, "session": given.session_id}
        question = linking.ask(JOIN, payload, given.identity_id, choices=_YES_NO)
        both = [*linking.accounts(), *linking.accounts(given.identity_id)]
        text = call.texts("link.join", account=called(call.texts, maker.account), list=_listed(call.texts, both))
        return [_here(call, before + text, buttons(question, call.texts, alone=True))]

    await call.memory.privacy.act(call.context, call.inbox_id, take)


def _lapsed(call: Call, linking: Linking) -> str:
    """Returns a line about an earlier link that nobody answered in time, else "". The next command tells it once."""
    return f"{call.texts('link.lapsed')}\n" if linking.lapsed(asked=JOIN, waiting=LINK) else ""


async def answer_join(call: Call, question: Question, taken: str) -> None:
    """Handles the answer of the person who gave a code; after a yes, asks the person who made it."""
    maker = await _other_side(call, question)
    barred = await _is_barred(call, maker)

    def take(linking: Linking) -> list[Note]:
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
        asked = linking.ask(LINK, payload, maker.account.id, choices=_YES_NO, of=maker)
        theirs = _texts_of(call, maker.account)
        both = [*linking.accounts(maker.account.id), *linking.accounts()]
        text = theirs("link.ask", account=called(theirs, me), list=_listed(theirs, both))
        until = call.texts.moment(linking.until)
        return [
            _here(call, call.texts("link.asked", account=called(call.texts, maker.account), until=until)),
            _there(maker.session_key, text, buttons(asked, theirs, alone=True)),
        ]

    await _act(call, take, wake=[maker.session_key])


async def answer_link(call: Call, question: Question, taken: str) -> None:
    """Handles the answer of the person who made a code: a yes links them with the person who gave it."""
    giver = await _other_side(call, question)
    barred = await _is_barred(call, giver)

    def take(linking: Linking) -> list[Note]:
        theirs = _texts_of(call, giver.account)
        me = linking.account()
        if not linking.settle(question, taken):
            return [_here(call, call.texts("answer.over"))]
        if taken != "yes":
            declined = theirs("link.declined", account=called(theirs, me))
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

    await _act(call, take, wake=[giver.session_key])


async def unlink(call: Call) -> None:
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

    def ask(edits: Edits) -> Asking:
        question = edits.ask(UNLINK, {"account": leaving.id}, choices=_YES_NO, preset="yes")
        text = call.texts("unlink.ask", list=numbered(call, accounts), account=called(call.texts, leaving))
        return Asking(text=text, buttons=buttons(question, call.texts, alone=True))

    await call.do(ask)


async def answer_unlink(call: Call, question: Question, taken: str) -> None:
    """Takes an account out, and tells all accounts that were one person until now."""
    leaving_id = int(json.loads(question.payload)["account"])
    woken: list[str] = []

    def take(linking: Linking) -> list[Note]:
        if not linking.settle(question, taken):
            return [_here(call, call.texts("answer.over"))]
        if taken != "yes":
            return [_here(call, call.texts("unlink.kept"))]
        together = linking.accounts()
        leaving = next((each for each in together if each.id == leaving_id), None)
        if leaving is None or len(together) < 2:
            return [_here(call, call.texts("unlink.none"))]
        linking.unlink(leaving.id)
        notes = [_here(call, call.texts("unlink.done", account=called(call.texts, leaving)))]
        for each in together:
            place = linking.private_place(each.id)
            if each.id == call.context.speaker.id or place is None:
                continue
            theirs = _texts_of(call, each)
            key = "unlink.alone" if each.id == leaving.id else "unlink.done"
            notes.append(_there(place, theirs(key, account=called(theirs, leaving))))
            woken.append(place)
        return notes

    await _act(call, take, wake=woken)


def numbered(call: Call, accounts: Sequence[Account]) -> str:
    lines = []
    for number, each in enumerate(accounts, 1):
        mark = call.texts("account.this") if each.id == call.context.speaker.id else ""
        lines.append(f"{number}. {called(call.texts, each)}{mark}")
    return "\n".join(lines)


async def _act(call: Call, take: Callable[[Linking], list[Note]], *, wake: Sequence[str]) -> None:
    edits = call.pressed_on if call.on_question else None
    await call.memory.privacy.act(call.context, call.inbox_id, take, edits=edits)
    for session_key in wake:
        call.wake(session_key)


async def _other_side(call: Call, question: Question) -> Party:
    asked = json.loads(question.payload)
    return await call.memory.privacy.party(int(asked["account"]), int(asked["session"]))


async def _is_barred(call: Call, party: Party) -> bool:
    channel = Place.from_session_key(party.session_key).channel
    return await call.access.state(channel, "person", party.account.user_id) == "blocked"


def _here(call: Call, text: str, pressed: Sequence[Button] = ()) -> Note:
    whole = f"{text}\n\n{call.aside}" if call.aside else text
    return Note(pieces=pieces(call.channel, whole, buttons=pressed))


def _there(session_key: str, text: str, pressed: Sequence[Button] = ()) -> Note:
    return Note(
        pieces=(Part(text=text, buttons=tuple((button.label, button.data) for button in pressed)),), to=session_key
    )


def _texts_of(call: Call, account: Account) -> Texts:
    return Texts(spoken(account.language, call.agent.spec.language), call.agent.spec.timezone)


def _listed(texts: Texts, accounts: Sequence[Account]) -> str:
    return texts("account.and").join(called(texts, each) for each in accounts)


def called(texts: Texts, account: Account) -> str:
    key = f"platform.{account.platform}"
    platform = texts(key) if key in CATALOGUE[texts.language] else account.platform.capitalize()
    return texts("account", name=excerpt(account.name, _NAME) or account.user_id, platform=platform)
