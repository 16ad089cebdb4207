"""The page's front door: every request passes here before anything is read or done for it.

Invariants: only names of this machine and the host of `web.url` are answered, so that no other site reaches the page
through a name of its own. Every change is a POST from the page itself, with a word that only the session's own forms
hold. A GET changes only the time of the last visit. Without a session there is only the sign-in. No answer is kept by a
browser, framed, or told to another site, and an answer runs only the page's own files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import quote, urlsplit

import jinja2
import structlog
from aiohttp import web
from markupsafe import Markup

from channels.base import Attachment, NotTaken
from gateway.config.loading import Config
from gateway.ops.connections import ALWAYS, STRANGER
from gateway.ops.health import Report
from gateway.ops.http import Admission, asks_us, authority_of, comes_from, in_words
from gateway.page import markdown
from gateway.page.forms import MOST_FILES, BadForm, sent
from gateway.page.visitors import Visitor, Visitors
from gateway.reading.attachments import PICTURE_BYTES
from gateway.wording.texts import CATALOGUE, Texts, spoken
from languages import Language
from memory.errors import StorageError

log = structlog.get_logger(__name__)

#: The most bytes of a form without files, and of the fields that come with files; and of a form of somebody who is not
#: signed in, which holds a link or a code.
_FORM_BYTES: Final = 200_000
_STRANGER_BYTES: Final = 8_000
_SECURITY: Final = {
    **ALWAYS,
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
#: The permissions of the one page that records a voice.
LISTENS: Final = "camera=(), geolocation=(), microphone=(self)"
_COOKIE_DAYS: Final = 90
#: The cookie of the theme, which says nothing of a person, and the days that it is kept.
_THEME: Final = "theme"
_THEMES: Final = ("light", "dark")
_THEME_DAYS: Final = 365
#: The most digits of a number.
_DIGITS: Final = 15


class Refused(Exception):
    """A request that is not answered: an HTTP status, and the key of the text that says why."""

    def __init__(self, status: int, key: str) -> None:
        super().__init__(key)
        self.status = status
        self.key = key


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request: its fields, its sender, and the ways to answer it. Pages behind the sign-in have a `visitor`."""

    site: Site
    request: web.BaseRequest
    path: Mapping[str, str]
    form: Mapping[str, str]
    files: tuple[Attachment, ...]
    visitors: Visitors
    texts: Texts
    guest: Visitor | None
    #: The number of questions that wait for the visitor, on pages.
    waiting: int = 0

    @property
    def visitor(self) -> Visitor:
        if self.guest is None:
            raise Refused(401, "page.sign_in_first")
        return self.guest

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query

    @property
    def theme(self) -> str:
        given = self.request.cookies.get(_THEME, "")
        return given if given in _THEMES else "system"

    @property
    def is_enhanced(self) -> bool:
        return self.request.headers.get("X-Remora") == "1"

    def number(self, given: str, missing: str) -> int:
        """Returns the number in an address or a form. Raises `Refused` with the text `missing` if it is none."""
        if not given.isdecimal() or len(given) > _DIGITS:
            raise Refused(404, missing)
        return int(given)

    def text(self, template: str, **values: Any) -> str:
        return self.site.templates.get_template(template).render(
            t=self.texts, visitor=self.guest, agents=self.visitors.agents, visit=self, at=self.request.path, **values
        )

    def html(self, template: str, status: int = 200, **values: Any) -> web.Response:
        return web.Response(status=status, text=self.text(template, **values), content_type="text/html")

    def to(self, place: str) -> web.Response:
        return web.Response(status=303, headers={"Location": place})


_T = TypeVar("_T")
Response: TypeAlias = web.StreamResponse
Handler = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path, such as `/memory/{id}`, and its handler. `open` routes need no session, `admin` ones an admin.

    Scripts ask for `polled` routes by themselves, so that is no visit.
    """

    method: str
    pattern: str
    handler: Handler
    open: bool = False
    admin: bool = False
    takes_files: bool = False
    polled: bool = False

    def match(self, path: str) -> dict[str, str] | None:
        """Returns the parts of a path that the pattern names; None if it is another path."""
        wanted, given = self.pattern.split("/"), path.split("/")
        if len(wanted) != len(given):
            return None
        parts = {}
        for want, part in zip(wanted, given, strict=True):
            if want.startswith("{"):
                if not part or len(part) > 100:
                    return None
                parts[want[1:-1]] = part
            elif want != part:
                return None
        return parts


class Site:
    """The page. Implements `gateway.ops.http.Door`."""

    def __init__(
        self,
        config: Config,
        visitors: Visitors,
        routes: tuple[Route, ...],
        language: Language,
        report: Callable[[], Awaitable[Report]],
        waiting: Callable[[Visit], Awaitable[int]],
    ) -> None:
        self.report = report
        self._waiting = waiting
        self._url = config.settings.web.url
        self._host = urlsplit(self._url).hostname or ""
        self.upload = config.settings.attachments.max_bytes
        self.hears = self.upload > 0 and config.settings.transcriber is not None
        self._visitors = visitors
        self._routes = routes
        self._language = language
        self._static = _static()

    @cached_property
    def templates(self) -> jinja2.Environment:
        made = jinja2.Environment(
            loader=jinja2.PackageLoader("gateway.page"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.globals |= {"static": self.address}
        made.filters |= {
            "markdown": markdown.rendered,
            "plain": markdown.plain,
            "part": lambda one: quote(one, safe=""),
            "capital": lambda one: one[:1].upper() + one[1:],
            "size": _size,
            "grouped": lambda one: f"{one:,}".replace(",", "\u202f"),
        }
        return made

    def takes(self, path: str) -> bool:
        """Returns True: paths that no other door takes belong to the page."""
        return True

    async def enter(self, request: web.BaseRequest) -> Admission | web.StreamResponse:
        """Implements `Door.enter`: host, route, origin and visitor are checked before a body is read."""
        if not asks_us(request, self._host):
            return web.Response(status=421, text=f"{self._texts(request)('page.host')}\n")
        file = self._file(request)
        return await self._told(request, self._entered(request)) if file is None else file

    async def failed(self, request: web.BaseRequest, status: int, error_id: str) -> web.Response:
        return await self._refusal(request, status, lambda own: self._in_words(own, request, status, error_id))

    def secured(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {**_SECURITY, **headers}

    def limits(self, texts: Texts) -> str:
        """Returns how many files are taken at once, and how large ones."""
        return texts(
            "page.files.limits", count=MOST_FILES, together=_size(self.upload),
            picture=_size(min(PICTURE_BYTES, self.upload)),
        )  # fmt: skip

    def _in_words(self, texts: Texts, request: web.BaseRequest, status: int, error_id: str = "") -> str:
        words = in_words(texts, status, error_id)
        return f"{words} {self.limits(texts)}" if status == 413 and request.path.endswith("/say") else words

    async def _told(self, request: web.BaseRequest, deed: Awaitable[_T]) -> _T | web.StreamResponse:
        try:
            return await deed
        except Refused as exc:
            key = exc.key
            return await self._refusal(request, exc.status, lambda own: own(key))
        except BadForm as exc:
            status = exc.status
            return await self._refusal(request, status, lambda own: self._in_words(own, request, status))
        except NotTaken as exc:
            why = str(exc)
            return await self._refusal(request, 503, lambda _own: why)
        except StorageError as exc:
            log.error("page.not_served", error=str(exc))
            reads = request.method in ("GET", "HEAD")
            why = self._texts(request, None).failed_store("error.unread" if reads else "error.not_taken", exc)
            return await self._refusal(request, 503, lambda _own: why)

    async def _entered(self, request: web.BaseRequest) -> Admission | web.StreamResponse:
        fitting = [(route, path) for route in self._routes if (path := route.match(request.path)) is not None]
        method = "GET" if request.method == "HEAD" else request.method
        route, path = next(((route, path) for route, path in fitting if route.method == method), (None, {}))
        if route is None and fitting:
            return await self.failed(request, 405, "")
        if route is None:
            raise Refused(404, "page.nothing_here")
        if method != "GET" and not comes_from(request, "https" if self._is_secure(request) else "http"):
            raise Refused(403, "page.elsewhere")
        guest = await self._visitors.of(self._cookie(request), visits=not route.polled)
        if guest is None and not route.open:
            if method == "GET":
                return web.Response(status=303, headers={"Location": "/in"})
            raise Refused(401, "page.sign_in_first")
        if route.admin and guest is not None and not guest.is_admin:
            # These pages exist only for admins.
            raise Refused(*((404, "page.nothing_here") if guest.admin_until is None else (403, "page.admin_over")))
        visit = Visit(
            site=self, request=request, path=path, form={}, files=(), visitors=self._visitors,
            texts=self._texts(request, guest), guest=guest,
        )  # fmt: skip
        return Admission(
            sender=STRANGER if guest is None else f"{guest.session.platform} {guest.session.user_id}",
            body_bytes=self._room(route, guest),
            answer=lambda body: self._told(request, self._answer(route, visit, body)),
        )

    async def _answer(self, route: Route, visit: Visit, body: bytes) -> web.StreamResponse:
        if route.method != "GET":
            form = await sent(visit.request.headers.get("Content-Type", ""), body)
            del body  # the files in it were copied, and may be taken for a while
            if visit.guest is not None and not route.open and not visit.guest.is_own(form.fields.get("nonce", "")):
                raise Refused(403, "page.stale")
            visit = replace(visit, form=form.fields, files=form.files)
        elif visit.guest is not None:
            visit = replace(visit, waiting=await self._waiting(visit))
        response = await route.handler(visit)
        if not response.prepared:
            for name, value in _SECURITY.items():
                response.headers.setdefault(name, value)
        return response

    def _room(self, route: Route, guest: Visitor | None) -> int:
        if route.method == "GET":
            return 0
        if guest is None:
            return _STRANGER_BYTES
        return _FORM_BYTES + (self.upload if route.takes_files else 0)

    # The origin of a request ------------------------------------------------------------------------------------

    def _is_secure(self, request: web.BaseRequest) -> bool:
        parts = urlsplit(self._url)
        return parts.scheme == "https" and authority_of(request) == parts.netloc.lower()

    # The cookie -------------------------------------------------------------------------------------------------

    def _cookie_name(self, request: web.BaseRequest) -> str:
        return "__Host-remora" if self._is_secure(request) else "remora"

    def _cookie(self, request: web.BaseRequest) -> str | None:
        return request.cookies.get(self._cookie_name(request))

    def set_cookie(self, request: web.BaseRequest, response: web.StreamResponse, token: str) -> None:
        self.remember(request, response, self._cookie_name(request), token)

    def remember(self, request: web.BaseRequest, response: web.StreamResponse, name: str, value: str) -> None:
        response.set_cookie(
            name, value, max_age=_COOKIE_DAYS * 86_400, path="/", secure=self._is_secure(request), httponly=True,
            samesite="Lax",
        )  # fmt: skip

    def drop_cookie(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        response.del_cookie(self._cookie_name(request), path="/", secure=self._is_secure(request), httponly=True)

    def set_theme(self, request: web.BaseRequest, response: web.StreamResponse, theme: str) -> None:
        """Has the browser remember a theme; any other word leaves the choice to its system."""
        secure = self._is_secure(request)
        if theme in _THEMES:
            response.set_cookie(
                _THEME, theme, max_age=_THEME_DAYS * 86_400, path="/", secure=secure, httponly=True, samesite="Lax"
            )
        else:
            response.del_cookie(_THEME, path="/", secure=secure, httponly=True)

    # Files of the page itself -----------------------------------------------------------------------------------

    def address(self, name: str) -> Markup:
        return Markup("/static/{}/{}").format(self._static[name][0], name)

    def _file(self, request: web.BaseRequest) -> web.Response | None:
        if not request.path.startswith("/static/") or request.method not in ("GET", "HEAD"):
            return None
        version, _, name = request.path.removeprefix("/static/").partition("/")
        if name not in self._static or self._static[name][0] != version:
            return web.Response(status=404, headers=_SECURITY)
        _, kind, data = self._static[name]
        headers = {**_SECURITY, "Cache-Control": "public, max-age=31536000, immutable", "Content-Type": kind}
        response = web.Response(body=data, headers=headers)
        response.enable_compression()
        return response

    async def _refusal(self, request: web.BaseRequest, status: int, why: Callable[[Texts], str]) -> web.Response:
        """Returns the page that says why nothing was done. With status 503 it does not need the database."""
        try:
            guest = await self._visitors.of(self._cookie(request), visits=False) if status != 503 else None
        except StorageError:
            guest = None
        texts = self._texts(request, guest)
        if request.headers.get("X-Remora") == "1":
            return web.Response(status=status, text=why(texts))
        visit = Visit(
            site=self, request=request, path={}, form={}, files=(), visitors=self._visitors, texts=texts, guest=guest
        )
        response = visit.html("refused.html", status, why=why(texts), code=status)
        response.headers.update(_SECURITY)
        return response

    def _texts(self, request: web.BaseRequest, guest: Visitor | None = None) -> Texts:
        """Returns the texts in the language that a visitor has chosen, else in that of their browser."""
        if guest is None:
            return Texts(spoken(_accepted(request), self._language), on_page=True)
        own = guest.context.speaker.language or _accepted(request)
        return Texts(spoken(own, guest.served.spec.language), guest.context.timezone, on_page=True)


def _size(count: int) -> str:
    return f"{count / 1_000_000:.3g}\u202fMB" if count >= 1_000_000 else f"{-(-count // 1_000)}\u202fkB"


def _accepted(request: web.BaseRequest) -> str:
    """Returns the first language of the browser's list, which is in order, that the catalogue has; "" if none."""
    listed = request.headers.get("Accept-Language", "").split(",")
    codes = (one.partition(";")[0].strip() for one in listed)
    return next((code for code in codes if code.partition("-")[0].lower() in CATALOGUE), "")


def _static() -> dict[str, tuple[str, str, bytes]]:
    """Returns the page's own files by name: a part of their hash, their type and their bytes."""
    kinds = {
        ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
        ".png": "image/png",
    }  # fmt: skip
    files = {}
    for file in resources.files("gateway.page").joinpath("static").iterdir():
        kind = kinds.get(Path(file.name).suffix)
        if kind is not None:
            data = file.read_bytes()
            files[file.name] = (hashlib.sha256(data).hexdigest()[:16], kind, data)
    return files
