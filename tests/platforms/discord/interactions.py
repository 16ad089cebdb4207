"""The API's routes for commands, completions, presses and forms, and for the answers to them.

Invariants: an interaction is answered first by its callback, once and within `answer_seconds`; after that its token
speaks for a quarter of an hour; what is ephemeral is seen by one person and by no request for a channel's messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tests.platforms.discord.bodies import Call, judge, kept_files
from tests.platforms.discord.model import (
    COMMAND_ANSWER,
    DEFAULT,
    EPHEMERAL,
    JSON,
    LOADING,
    SUPPRESS_EMBEDS,
    Interaction,
    Message,
    Refused,
    bad_form,
)
from tests.platforms.discord.rest import Answer, change, shown
from tests.platforms.discord.world import World, new_message

COMMAND, COMPONENT, COMPLETION, FORM = 2, 3, 4, 5
_SAY, _DEFER, _DEFER_UPDATE, _UPDATE, _CHOICES, _MODAL = 4, 5, 6, 7, 8, 9
#: For which interactions a callback of that type can be given.
_FITS = {
    _SAY: (COMMAND, COMPONENT, FORM),
    _DEFER: (COMMAND, COMPONENT, FORM),
    _DEFER_UPDATE: (COMPONENT, FORM),
    _UPDATE: (COMPONENT, FORM),
    _CHOICES: (COMPLETION,),
    _MODAL: (COMMAND, COMPONENT),
}
_TOKEN_SECONDS = 15 * 60
_COMMAND_NAME = re.compile(r"[-_'\w]{1,32}")


def callback(call: Call) -> Answer:
    """The first answer. A late one is unknown, a second one is refused and recorded."""
    world = call.world
    found = world.interactions.get(call.number("interaction_id"))
    if found is None or found.token != call.path["token"]:
        raise Refused(404, 10062, "Unknown interaction")
    after = world.now() - found.made_at
    if found.response is not None:
        world.violations.append({"kind": "double answer", "method": "callback", "interaction": found.id})
        raise Refused(400, 40060, "Interaction has already been acknowledged.")
    if after > world.answer_seconds:
        world.violations.append({"kind": "late", "method": "callback", "interaction": found.id, "after": after})
        raise Refused(404, 10062, "Unknown interaction")
    kind, data = call.body.get("type"), call.body.get("data") or {}
    if kind not in _FITS or found.kind not in _FITS[kind] or (kind in (_DEFER_UPDATE, _UPDATE) and not found.message):
        raise bad_form("type", f"Value must be one of {{{', '.join(map(str, _FITS))}}}.", "BASE_TYPE_CHOICES")
    if kind == _SAY:
        judge(call, data, "callback")
        _say(call, found, data)
    elif kind == _DEFER:
        found.ephemeral = bool(data.get("flags", 0) & EPHEMERAL)
        found.fresh = True
        _post(call, found, {"content": ""}, LOADING | (EPHEMERAL if found.ephemeral else 0))
    elif kind in (_DEFER_UPDATE, _UPDATE):
        found.original = found.message
        if kind == _UPDATE:
            change(call, _original(world, found), data, "callback")
    elif kind == _CHOICES:
        found.choices = _judged_choices(data.get("choices", []))
    else:
        found.form = _judged_form(data)
    found.response, found.responded_after = kind, after
    world.pulse.beat()
    if call.query.get("with_response") != "1":
        return 204, None
    return 200, _callback_wire(world, found)


def edit_original(call: Call) -> Answer:
    """The first answer to a deferred command, or a change of what was answered."""
    found = _spoken(call)
    return 200, _change(call, found, _original(call.world, found), "edit_original")


def followup(call: Call) -> Answer:
    """A further answer; where the first is still to be made, it becomes that one, with its eyes."""
    world, found = call.world, _spoken(call)
    judge(call, call.body, "followup")
    if found.fresh:
        return 200, _change(call, found, _original(world, found), "followup")
    flags = int(call.body.get("flags", 0)) & (EPHEMERAL | SUPPRESS_EMBEDS)
    said = _post(call, found, call.body, flags)
    found.followups.append(said.id)
    return 200, shown(world, said)


def edit_followup(call: Call) -> Answer:
    return 200, _change(call, _spoken(call), _followup(call), "edit_followup")


def put_commands(call: Call) -> Answer:
    """All commands of a scope at once. New names count as creates, of which a day has `create_limit`."""
    world, scope = call.world, _scope(call)
    asked = call.body.get("list", [])
    world.puts[scope] += 1
    _judge_commands(asked)
    known = {one["name"]: one for one in world.commands.get(scope, [])}
    new = [one for one in asked if one["name"] not in known]
    if world.creates[scope] + len(new) > world.create_limit:
        words = f"Max number of daily application command creates has been reached ({world.create_limit})"
        # Both statuses have been seen.
        raise Refused(world.create_status, 30034, words)
    world.creates[scope] += len(new)
    place = {} if scope is None else {"guild_id": str(scope)}
    world.commands[scope] = [
        {
            "type": 1,
            "options": [],
            "default_member_permissions": None,
            "nsfw": False,
            **one,
            "id": known[one["name"]]["id"] if one["name"] in known else str(world.snowflakes.next()),
            "application_id": str(world.me.id),
            "version": str(world.snowflakes.next()),
            **place,
        }
        for one in asked
    ]
    world.pulse.beat()
    return 200, world.commands[scope]


def _say(call: Call, found: Interaction, data: JSON) -> None:
    found.ephemeral = bool(data.get("flags", 0) & EPHEMERAL)
    _post(call, found, data, int(data.get("flags", 0)) & (EPHEMERAL | SUPPRESS_EMBEDS))


def _post(call: Call, found: Interaction, body: JSON, flags: int) -> Message:
    """A message that answers an interaction; the first one is its original."""
    world = call.world
    place = world.channels[found.channel]
    said = new_message(
        world,
        place,
        world.me,
        (body.get("content") or "").strip(),
        type=COMMAND_ANSWER if found.kind == COMMAND else DEFAULT,
        flags=flags,
        only_for=found.user if flags & EPHEMERAL else None,
        components=body.get("components") or [],
        embeds=body.get("embeds") or [],
        files=kept_files(call),
        webhook=world.me.id,
        interaction={
            "id": str(found.id),
            "type": found.kind,
            "user": world.people[found.user].wire(),
            "authorizing_integration_owners": {},
        },
        asked=[body],
    )
    if found.original is None:
        found.original = said.id
    return world.post(place, said)


def _change(call: Call, found: Interaction, message: Message, where: str) -> JSON:
    change(call, message, call.body, where)
    found.fresh = False
    return shown(call.world, message)


def _spoken(call: Call) -> Interaction:
    """The interaction that a token speaks for. Raises `Refused`."""
    world = call.world
    found = world.tokens.get(call.path["token"])
    if found is None:
        raise Refused(401, 50027, "Invalid Webhook Token")
    # A form is no answer yet: what is said with it still has to come from the form.
    if found.response is None or found.response == _CHOICES:
        raise Refused(404, 10015, "Unknown Webhook")
    if world.now() - found.made_at > _TOKEN_SECONDS:
        raise Refused(404, 10015, "Unknown Webhook")
    return found


def _original(world: World, found: Interaction) -> Message:
    message = world.channels[found.channel].messages.get(found.original or 0)
    if message is None or message.deleted:
        raise Refused(404, 10008, "Unknown Message")
    return message


def _followup(call: Call) -> Message:
    found = _spoken(call)
    number = call.number("message_id")
    message = call.world.channels[found.channel].messages.get(number)
    if number not in (*found.followups, found.original) or message is None or message.deleted:
        raise Refused(404, 10008, "Unknown Message")
    return message


def _callback_wire(world: World, found: Interaction) -> JSON:
    told: JSON = {"interaction": {"id": str(found.id), "type": found.kind}}
    if found.original is not None:
        message = world.channels[found.channel].messages[found.original]
        told["interaction"] |= {
            "response_message_id": str(message.id),
            "response_message_loading": message.loading,
            "response_message_ephemeral": bool(message.flags & EPHEMERAL),
        }
        told["resource"] = {"type": found.response, "message": shown(world, message)}
    return told


def _judged_choices(choices: Sequence[JSON]) -> list[JSON]:
    if len(choices) > 25:
        raise bad_form("data.choices", "Must be 25 or fewer in length.")
    for at, choice in enumerate(choices):
        for part in ("name", "value"):
            if not 1 <= len(str(choice.get(part, ""))) <= 100:
                raise bad_form(f"data.choices.{at}.{part}", "Must be between 1 and 100 in length.")
    return list(choices)


def _judged_form(data: JSON) -> JSON:
    if not 1 <= len(data.get("title", "")) <= 45:
        raise bad_form("data.title", "Must be between 1 and 45 in length.")
    if not 1 <= len(data.get("custom_id", "")) <= 100:
        raise bad_form("data.custom_id", "Must be between 1 and 100 in length.")
    if not 1 <= len(data.get("components", ())) <= 5:
        raise bad_form("data.components", "Must be between 1 and 5 in length.")
    for at, outer in enumerate(data["components"]):
        for field in inputs(outer):
            where = f"data.components.{at}"
            label = field.get("label") or outer.get("label") or ""
            if not 1 <= len(label) <= 45:
                raise bad_form(f"{where}.label", "Must be between 1 and 45 in length.")
            if len(field.get("value") or "") > field.get("max_length", 4_000):
                raise bad_form(f"{where}.value", f"Must be {field.get('max_length', 4_000)} or fewer in length.")
            if not 1 <= field.get("max_length", 4_000) <= 4_000:
                raise bad_form(f"{where}.max_length", "int value should be between 1 and 4000.", "NUMBER_TYPE_MAX")
            if len(field.get("placeholder") or "") > 100:
                raise bad_form(f"{where}.placeholder", "Must be 100 or fewer in length.")
    return data


def inputs(outer: JSON) -> list[JSON]:
    """The fields within a form's row or label."""
    within = [outer["component"]] if "component" in outer else outer.get("components", [])
    return [one for one in within if one.get("type") == 4]


def _judge_commands(asked: Sequence[JSON]) -> None:
    if len(asked) > 100:
        raise Refused(400, 30032, "Maximum number of application commands reached (100).")
    for at, command in enumerate(asked):
        _judge_named(command, str(at))
        options = command.get("options", [])
        if len(options) > 25:
            raise bad_form(f"{at}.options", "Must be 25 or fewer in length.")
        optional = False
        for spot, option in enumerate(options):
            where = f"{at}.options.{spot}"
            _judge_named(option, where)
            if option.get("required") and optional:
                words = "Required options must be placed before non-required options"
                raise bad_form(where, words, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID")
            optional = optional or not option.get("required")
            if option.get("autocomplete") and option.get("choices"):
                raise bad_form(where, "Autocomplete and choices exclude each other", "APPLICATION_COMMAND_AUTOCOMPLETE")
            if len(option.get("choices", ())) > 25:
                raise bad_form(f"{where}.choices", "Must be 25 or fewer in length.")
    names = [one["name"] for one in asked]
    if len(set(names)) < len(names):
        words = "Application command names must be unique"
        raise bad_form("name", words, "APPLICATION_COMMANDS_DUPLICATE_NAME")


def _judge_named(what: JSON, where: str) -> None:
    name, texts = str(what.get("name", "")), [what.get("description", "")]
    texts += (what.get("description_localizations") or {}).values()
    if not _COMMAND_NAME.fullmatch(name) or name != name.lower():
        raise bad_form(f"{where}.name", "Command name is invalid", "APPLICATION_COMMAND_INVALID_NAME")
    if any(not 1 <= len(text) <= 100 for text in texts):
        raise bad_form(f"{where}.description", "Must be between 1 and 100 in length.")


def _scope(call: Call) -> int | None:
    """The guild whose commands are meant; None for those of everywhere."""
    if call.number("application_id") != call.world.me.id:
        raise Refused(403, 20012, "You are not authorized to perform this action on this application")
    if "guild_id" not in call.path:
        return None
    guild = call.world.guilds.get(call.number("guild_id"))
    if guild is None or guild.gone:
        raise Refused(403, 50001, "Missing Access")
    return guild.id


_HOOK = "/webhooks/{application_id}/{token}"
ROUTES: Sequence[tuple[str, str, str, Callable[[Call], Answer]]] = (
    ("PUT", "/applications/{application_id}/commands", "put_commands", put_commands),
    ("PUT", "/applications/{application_id}/guilds/{guild_id}/commands", "put_commands", put_commands),
    ("POST", "/interactions/{interaction_id}/{token}/callback", "callback", callback),
    ("POST", _HOOK, "followup", followup),
    ("PATCH", f"{_HOOK}/messages/@original", "edit_original", edit_original),
    ("PATCH", f"{_HOOK}/messages/{{message_id}}", "edit_followup", edit_followup),
)
