"""The table of commands: their names, usage, handlers and places. Every channel and /help are made from it.

The modules of this package hold the handlers and are named after them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from channels.base import CommandSpec, Form, Inbound, Option, Suggestion
from gateway.actions.memory import FORGET, syntax
from gateway.commands import (
    admin,
    forget,
    jobs,
    keys,
    listing,
    memory,
    oversight,
    people,
    plain,
    privacy,
    profile,
    reminders,
    session,
    tools,
)
from gateway.commands import memory as memory_command
from gateway.commands.call import EXCERPT, Asking, Call, Command, examples, excerpt
from gateway.commands.jobs import job_name
from gateway.pipeline import questions
from gateway.pipeline.delivery import RUN
from gateway.pipeline.policy import code_in
from gateway.wording.texts import CATALOGUE, Deferred, Texts
from languages import Language
from memory.browse.browse import LISTED
from memory.chat.doubts import DOUBT
from memory.chat.edits import Edits
from memory.chat.outside_calls import CALL
from memory.context import Context
from memory.service import Service
from memory.store.memories import Memory
from memory.store.questions import Question
from memory.text.words import fold, query_terms
from memory.text.zones import zones_like

#: Characters shown of a memory to choose.
_LABEL = 100
#: Largest number of completions a platform takes.
_SUGGESTED = 25
#: Largest number of typed words that are searched for.
_WORDS = 12
#: Room in a form, in characters, unless the present value needs more.
_FORM_LIMIT = 2_000
#: Actions allowed on every memory the person sees; any other action requires that the person may change the memory.
_LOOKING = frozenset({"show", "history"})


async def completions(
    store: Service, context: Context, texts: Texts, name: str, typed: str, arguments: str
) -> Sequence[Suggestion]:
    action = arguments.partition(" ")[0].lower()
    typed = " ".join(typed[:EXCERPT].split())
    if name == "profile":
        return _settings(action, typed)
    if name == "memory" and action == "list":
        return await _parts(store, context, texts, typed)
    if name == "memory" and action in memory_command.WITH_RUN:
        return await _runs(store, context, texts, typed, undone=action == "run")
    if name == "memory" and action == "preview":
        return [
            Suggestion(value=job, label=job_name(texts, job))
            for job in store.jobs.names
            if job.startswith(typed.lower())
        ]
    if name == "memory" and action not in memory_command.WITH_ID:
        return ()
    changeable = name != "memory" or action not in _LOOKING
    folded = typed.casefold()
    # The typed text may end within a word, and some scripts have no spaces.
    words = list(dict.fromkeys([*typed.split(), *folded.split(), *query_terms(folded)]))[:_WORDS]
    prefix = folded if " " not in folded else ""
    memories = await store.browse.offered(context, prefix, words, changeable=changeable, limit=_SUGGESTED)
    return [Suggestion(value=memory.short_id, label=_labelled(memory, context)) for memory in memories]


def _settings(what: str, typed: str) -> list[Suggestion]:
    if what == "timezone":
        return [Suggestion(value=zone, label=zone) for zone in zones_like(typed, limit=_SUGGESTED)]
    if what == "language":
        return [Suggestion(value=code, label=label) for code, label in profile.NAMES.items()]
    if what == "manner":
        return [Suggestion(value=word, label=word) for word in ("auto", "off", "on") if word.startswith(typed.lower())]
    return []


async def _parts(store: Service, context: Context, texts: Texts, typed: str) -> list[Suggestion]:
    shelf = await store.browse.shelf(context, LISTED, limit=1, page=1)
    counts: dict[tuple[str, str], int] = {}
    for (kind, category), count in shelf.counts.items():
        parts = [("kinds", kind), ("category", category)] if kind == "fact" else [("kinds", kind)]
        for part in parts:
            counts[part] = counts.get(part, 0) + count
    labels = {named: (f"{texts(f'{group}.{named}')} ({count})") for (group, named), count in counts.items()}
    begun = typed.casefold()
    return [
        Suggestion(value=named, label=label)
        for named, label in labels.items()
        if named.startswith(begun) or label.casefold().startswith(begun)
    ][:_SUGGESTED]


async def _runs(store: Service, context: Context, texts: Texts, typed: str, *, undone: bool) -> list[Suggestion]:
    """Returns the runs of night jobs that changed something here, newest first; with `undone` also those taken back."""
    labels: dict[str, str] = {}
    for item in await store.jobs.mine(context, limit=2 * _SUGGESTED):
        number = str(item.run.id)
        if number.startswith(typed) and (undone or item.state != "undone"):
            labels[number] = f"{number} · {texts.date(item.run.started_at)} · {job_name(texts, item.run.job)}"
    return [Suggestion(value=number, label=label) for number, label in labels.items()][:_SUGGESTED]


def _labelled(memory: Memory, context: Context) -> str:
    own = memory.subject_id is None or memory.subject_id in (context.speaker.id, *context.scope.selves)
    whose = "" if own else f"{memory.subject_name}: "
    return excerpt(f"{memory.short_id} · {whose}{memory.key}: {memory.value}", _LABEL)


async def form(store: Service, context: Context, texts: Texts, name: str, arguments: str) -> Form | None:
    words = arguments.split()
    if name == "remember" and not words:
        return Form(title=texts("form.remember.title"), label=texts("form.remember.label"), limit=_FORM_LIMIT)
    if name == "memory" and [word.lower() for word in words[:1]] == ["edit"]:
        name, words = "correct", words[1:]
    if name != "correct" or len(words) != 1:
        return None
    offered = await store.browse.offered(context, words[0], (words[0],), changeable=True, limit=_SUGGESTED)
    found = next((memory for memory in offered if memory.short_id == words[0]), None)
    if found is None:
        return None
    return Form(
        title=texts("form.correct.title", id=found.short_id),
        label=texts("form.correct.label"),
        value=found.value,
        limit=max(_FORM_LIMIT, len(found.value)),
    )


#: How alike two words are, from 0 to 1, for one to be taken for the other misspelt: a turned pair of letters in a word
#: of three (/wyh) is, a word that shares three letters in five (/admin, "again") is not.
_NEAR: Final = 0.66

#: A slash and a word of any script, whose accents may be characters of their own. Only some in ASCII are commands.
_COMMAND = re.compile(r"/([^\W\d_][\w\u0300-\u036f\u3099\u309a]{0,31})(?:\s+([\s\S]*))?")


def parse(text: str) -> tuple[str, str] | None:
    """Returns ("name", "arguments") of a command, else None. Neither /usr/bin nor a look-alike (Kelvin sign) is one."""
    match = _COMMAND.fullmatch(text.strip())
    if match is None:
        return None
    if code_in(text) is not None:
        return ("start", "")  # a pairing code from a person already let in, perhaps by this very code
    return match[1].lower() if match[1].isascii() else match[1], (match[2] or "").strip()


def given(inbound: Inbound) -> tuple[str, str] | None:
    """Returns the command that a person typed or pressed; None for anything else, also for a forwarded command."""
    if inbound.task is not None:
        return None
    if inbound.pressed is not None:
        return parse(inbound.pressed.removeprefix(RUN)) if inbound.pressed.startswith(RUN) else None
    return None if inbound.forwarded else parse(inbound.text)


def find(name: str) -> Command | None:
    return _BY_NAME.get(name)


def specs(language: Language) -> list[CommandSpec]:
    texts = Texts(language)
    return [
        CommandSpec(
            name=command.name,
            help=texts(f"help.{command.name}"),
            usage=command.usage,
            translated=Deferred(partial(_translated, f"help.{command.name}")),
            options=tuple(
                replace(option, help=texts(key), translated=Deferred(partial(_translated, key)))
                for option in command.options
                for key in (f"option.{command.name}.{option.name}",)
            ),
            admin=command.admin,
            private=command.private,
            shared=command.shared,
            forms=command.forms,
        )
        for command in TABLE
    ]


def _translated(key: str) -> Mapping[str, str]:
    english = CATALOGUE["en"][key]
    return {code: texts[key] for code, texts in CATALOGUE.items() if code == "en" or texts[key] != english}


def unknown(name: str, texts: Texts) -> str:
    """Returns the answer to a command that does not exist. People may also type their own words, such as /vergessen."""
    words = dict(word.split(":") for word in texts("command.words").split())
    meant = {fold(word): command for word, command in words.items()}
    meant |= {command.name: command.name for command in TABLE if not command.admin}
    near = difflib.get_close_matches(fold(name), meant, n=1, cutoff=_NEAR)
    hint = texts("command.hint", name=meant[near[0]]) if near else ""
    return texts("command.unknown", name=name, hint=hint)


async def run(call: Call, name: str) -> None:
    command = find(name)
    if command is None or (command.admin and not call.admin):
        await call.say(unknown(name, call.texts))
    else:
        beside = call.inbound.pressed is None and call.inbound.attachments
        aside = call.texts("command.file") if beside else ""
        call = replace(call, usage=command.usage, discreet=command.discreet, aside=aside)
        if command.elsewhere and call.inbound.chat_kind != "private":
            await call.say(call.texts(command.elsewhere))
        else:
            await command.run(call)


async def suggestions(
    store: Service, context: Context, texts: Texts, name: str, option: str, typed: str, arguments: str = ""
) -> Sequence[Suggestion]:
    """Returns completions for `option` of a command, best first: only memories that the person could act on."""
    command = find(name)
    if command is None or not any(each.name == option and each.suggests for each in command.options):
        return ()
    if name == "help":
        begun = typed.removeprefix("/").lower()
        known = [each for each in TABLE if not each.admin and each.name.startswith(begun)]
        return [Suggestion(value=each.name, label=f"/{each.name}: {texts(f'help.{each.name}')}") for each in known]
    return await completions(store, context, texts, name, typed, arguments)


async def press(call: Call, data: str) -> bool:
    return await reminders.press(call, data) or await listing.press(call, data)


async def answer(call: Call, question: Question, taken: str) -> None:
    take_answer = _ANSWERS.get(question.purpose)
    if taken in (questions.UNSURE, questions.UNCLEAR):
        await _ask_again(call, question, taken)
    elif take_answer is None:  # another version has asked
        await call.say(call.texts("answer.over"))
    else:
        await take_answer(call, question, taken)


async def _ask_again(call: Call, question: Question, taken: str) -> None:
    words = " / ".join(questions.label(call.texts, name) for name in question.choices)
    again = questions.buttons(question, call.texts, alone=True)

    def ask_again(edits: Edits) -> Asking:
        if taken == questions.UNCLEAR:
            edits.ask_again(question)
        return Asking(text=call.texts(f"answer.{taken}", choices=words), buttons=again)

    await call.do(ask_again)


async def told_before(call: Call) -> bool:
    """Gives the receipt for data that this message had erased before the process ended; False if there is none."""
    receipt = await call.memory.forgetting.receipt(call.inbox_id)
    if receipt is None:
        return False
    await (privacy if receipt.what == "me" else forget).hand_out(call, receipt)
    return True


async def _help(call: Call) -> None:
    named, _, action = call.arguments.removeprefix("/").lower().partition(" ")
    known = [command for command in TABLE if call.admin or not command.admin]
    command = next((command for command in known if command.name == named), None)
    if not named:
        lines = [f"{each.usage} – {call.texts(f'help.{each.name}')}" for each in known]
        await call.say("\n".join([call.texts("help.head"), *lines, call.texts("help.how")]))
    elif command is None:
        await call.say(unknown(excerpt(named), call.texts))
    else:
        await call.say(explained(call.texts, command, action.strip()))


def explained(texts: Texts, command: Command, action: str) -> str:
    def line(each: str) -> str:
        return f"{memory.usage_of(each)} – {texts(f'action.{each}')}"

    if command.name == "memory" and action in memory.ACTIONS:
        return line(action)
    lines = [f"{command.usage} – {texts(f'help.{command.name}')}"]
    if command.name == "memory":
        lines += [f"  {line(each)}" for each in memory.ACTIONS]
    return "\n".join([*lines, *examples(texts, command.name)])


def _option(name: str, *, required: bool = False, choices: tuple[str, ...] = (), suggests: bool = False) -> Option:
    return Option(name=name, help="", required=required, choices=choices, suggests=suggests)


TABLE: tuple[Command, ...] = (
    Command(name="start", usage="/start", run=session.start, at_once=True),
    Command(
        name="help", usage="/help [command]", run=_help, options=(_option("command", suggests=True),), at_once=True,
    ),
    Command(name="new", usage="/new", run=session.new, shared=True),
    Command(name="stop", usage="/stop", run=session.stop, at_once=True, shared=True),
    Command(name="retry", usage="/retry", run=session.retry, shared=True),
    Command(name="undo", usage="/undo", run=session.undo, shared=True),
    Command(name="task", usage="/task [<text>|done]", run=session.task, options=(_option("text"),), shared=True),
    Command(name="compact", usage="/compact", run=session.compact, shared=True),
    Command(name="model", usage="/model [name|default]", run=session.model, options=(_option("name"),), shared=True),
    Command(name="agent", usage="/agent [name|default]", run=session.agent, options=(_option("name"),), shared=True),
    Command(name="status", usage="/status", run=session.status, at_once=True, discreet=True),
    Command(name="usage", usage="/usage", run=session.usage, at_once=True, discreet=True),
    Command(
        name="tools", usage="/tools [accept <name> [code]]", run=tools.tools,
        options=(_option("action", choices=("accept",)), _option("name"), _option("code")),
    ),
    Command(
        name="memory", usage=memory.USAGE, run=memory.look, forms=True,
        options=(_option("action", choices=memory.ACTIONS), _option("rest", suggests=True)),
    ),
    Command(
        name="remind", usage=reminders.USAGE, run=reminders.remind, shared=True, options=(_option("text"),),
    ),
    Command(
        name="remember", usage=f"/remember {syntax('remember')}", run=memory.remember, forms=True,
        options=(_option("text"),),
    ),
    Command(
        name="correct", usage=f"/correct {syntax('correct')}", run=memory.correct, forms=True,
        options=(_option("id", required=True, suggests=True), _option("value")),
    ),
    Command(
        name="forget", usage="/forget <id|words|filters|time|here|all>", run=forget.forget,
        options=(_option("what", suggests=True),),
    ),
    Command(
        name="profile", usage=f"/profile [{'|'.join(profile.WHAT)}] …", run=profile.profile, private=True,
        options=(_option("what", choices=profile.WHAT), _option("value", suggests=True)),
    ),
    Command(name="why", usage="/why [all|<id>]", run=memory.why_of, options=(_option("what"),)),
    Command(
        name="web", usage="/web [out]", run=keys.web, private=True, elsewhere="web.private",
        options=(_option("action", choices=("out",)),),
    ),
    Command(name="link", usage="/link [code]", run=people.link, options=(_option("code"),), private=True),
    Command(
        name="unlink", usage="/unlink [number]", run=people.unlink, private=True, elsewhere="link.private",
        options=(_option("account"),),
    ),
    Command(
        name="keys", usage="/keys [make|revoke] …", run=keys.keys, private=True, elsewhere="keys.private",
        options=(_option("action", choices=("make", "revoke")), _option("name")),
    ),
    Command(
        name="privacy", run=privacy.privacy,
        usage="/privacy [out|in|about off|about on|followups on [hours]|followups off|looks [page]|delete]",
        discreet=True, options=(
            _option("action", choices=("out", "in", "about", "followups", "looks", "delete")),
            _option("state", choices=("on", "off")), _option("page"),
        ),
    ),
    Command(
        name="admin", usage="/admin memory <user or group id> [list|search|show|forget] …", run=oversight.oversee,
        admin=True, private=True, elsewhere="oversight.private", options=(
            _option("what", required=True, choices=("memory",)), _option("who", required=True),
            _option("action", choices=("list", "search", "show", "forget")), _option("rest"),
        ),
    ),
    Command(name="allow", usage="/allow <user id>|here", run=admin.allow, options=(_option("who"),), admin=True),
    Command(name="block", usage="/block <user id>|here", run=admin.block, options=(_option("who"),), admin=True),
    Command(name="pair", usage="/pair", run=admin.pair, admin=True, private=True, elsewhere="pair.private"),
    Command(name="agents", usage="/agents", run=admin.agents, admin=True, private=True, elsewhere="agents.private"),
    Command(name="reload", usage="/reload", run=admin.reload, admin=True, private=True, elsewhere="reload.private"),
    Command(name="backup", usage="/backup", run=admin.backup, admin=True, private=True, elsewhere="backup.private"),
    Command(
        name="jobs", usage="/jobs [run <job> [agent]]", run=jobs.jobs, admin=True, private=True,
        elsewhere="jobs.private", options=(
            _option("action", choices=("run",)), _option("job", choices=jobs.NAMES), _option("agent"),
        ),
    ),
    Command(
        name="dead", usage="/dead [retry <id>|drop <id>|purge]", run=admin.dead, admin=True, private=True,
        elsewhere="dead.private", options=(_option("action", choices=("retry", "drop", "purge")), _option("id")),
    ),
)  # fmt: skip

_BY_NAME = {command.name: command for command in TABLE}

# What the rest of the gateway needs of single commands.
bare_code = people.bare_code

#: Handlers of the answers to questions, by the question's purpose.
_ANSWERS: Mapping[str, Callable[[Call, Question, str], Awaitable[None]]] = {
    FORGET: forget.answer,
    CALL: tools.answer,
    DOUBT: memory.answer_doubt,
    forget.EXPORTS: forget.answer_exports,
    oversight.FORGET: oversight.answer,
    people.JOIN: people.answer_join,
    people.LINK: people.answer_link,
    people.UNLINK: people.answer_unlink,
    privacy.DELETE: privacy.answer_delete,
    plain.PICK: plain.answer_which,
    reminders.WHEN: reminders.answer_when,
}
