"""/web: a link to the web page, which signs in the person who asks for it, and the way out again."""

from __future__ import annotations

import secrets

from gateway.commands.call import Call


async def web(call: Call) -> None:
    """Gives the person a link that signs them in once, or ends all their sessions on the page."""
    inbound, roster = call.inbound, call.roster
    visits = roster.stores[roster.default].memory.visits
    page = call.agent.spec.name if call.agent.spec.name in roster.pages else next(iter(roster.pages), None)
    if inbound.platform == "web":
        await call.say(call.texts("web.here"))
    elif call.arguments.strip().lower() == "out":
        count = await visits.sign_out_everywhere(inbound.channel, inbound.author_id)
        await call.say(call.texts("web.out", count=count))
    elif page is None:
        await call.say(call.texts("web.off"))
    elif inbound.platform == "console":
        await call.say(call.texts("web.terminal"))
    else:
        code = secrets.token_urlsafe(32)
        until = await visits.open_code(
            code, channel=inbound.channel, platform=inbound.platform, user_id=inbound.author_id, agent=page
        )
        link = f"{roster.pages[page]}/in#{code}"
        await call.say(call.texts("web.link", link=link, until=call.texts.moment(until)))
