"""The page as an app of its device: its manifest, the number of what waits, and whether this browser tells of it."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from gateway.page.site import Visit

#: The cookie of a browser that shows notifications. It is a setting of the browser, so no session keeps it.
NOTIFY: Final = "remora-notify"


async def manifest(visit: Visit) -> web.StreamResponse:
    icons = [
        {
            "src": visit.site.address(f"icon-{name}.png"),
            "sizes": f"{size}x{size}",
            "type": "image/png",
            "purpose": purpose,
        }
        for name, size, purpose in (("192", 192, "any"), ("512", 512, "any"), ("whole-512", 512, "maskable"))
    ]
    return web.json_response(
        {
            "name": visit.texts("page.title"),
            "short_name": visit.texts("page.title"),
            "description": visit.texts("page.in.lead"),
            "lang": visit.texts.language,
            "id": "/",
            "start_url": "/chat",
            "scope": "/",
            "display": "standalone",
            "background_color": "#f7f4ed",
            "theme_color": "#0e6b66",
            "icons": icons,
        },
        content_type="application/manifest+json",
    )


async def waiting(visit: Visit) -> web.StreamResponse:
    """Returns how many questions and messages wait for the visitor, for the title and the app's badge."""
    visitor = visit.visitor
    messages = await visitor.store.memory.browse.waiting(visitor.context, platform=visitor.channel.platform)
    count = visit.waiting + messages
    return web.json_response({"count": count, "text": visit.texts("page.app.waiting", count=count)})


async def notify(visit: Visit) -> web.StreamResponse:
    response = visit.to("/me#browser")
    if visit.form.get("on") == "1":
        visit.site.remember(visit.request, response, NOTIFY, "1")
    else:
        response.del_cookie(NOTIFY, path="/")
    return response
