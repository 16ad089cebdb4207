"""The vendors of `vendors.yaml`: how each writes answers and errors, what it refuses, and where that was read.

Invariants: statuses, codes and the names of fields are the vendor's; sentences are shortened to what a client reads in
them. `DATE` is the day on which the pages were looked up.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from string import Template
from typing import Any, Final, Literal

import yaml

from bench.vendors import rules
from bench.vendors.rules import Rule
from bench.vendors.wire import Refusal, Shape

DATE: Final = "2026-11-27"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """A model server. `provider` is Remora's name for it, `key` the variable with its key.

    `proves` says whether its calls come with an opaque text that it wants back.
    """

    name: str
    provider: str
    model: str
    pages: str
    key: str = ""
    form: Literal["openai", "anthropic"] = "openai"
    shape: Shape
    proves: bool = False
    rules: tuple[Rule, ...] = ()
    error: Any
    errors: Mapping[int, Any] = field(default_factory=dict)
    kinds: Mapping[int, str] = field(default_factory=lambda: {4: "invalid_request_error", 5: "server_error"})
    code: str | None = None
    faults: Mapping[str, Mapping[str, Any]]

    def refuse(self, status: int, message: str, headers: Mapping[str, str] | None = None, **more: Any) -> Refusal:
        of_status = self.kinds.get(status, self.kinds[status // 100])
        given: dict[str, Any] = {
            "message": message, "status": status, "random": secrets.token_hex(8), "of_status": of_status,
            "kind": of_status, "code": self.code, "param": None, "where": ["body", more.get("param")], **more,
        }  # fmt: skip
        form = self.errors.get(status, self.error)
        return Refusal(status, _filled(form, given, {*given} - {"code"} | {*more}), headers or {})

    def wrapped(self, status: int, message: str) -> Refusal:
        """A refusal of somebody behind this server, as it passes it on."""
        raw = json.dumps({"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}})
        return self.refuse(
            status, "Provider returned error", metadata={"raw": raw, "provider_name": "Google AI Studio"}
        )

    def fault(self, name: str, **values: object) -> Refusal:
        """Returns the refusal that its documentation has for this: `key`, `limit`, `quota` and the like."""
        given = {"model": self.model, "limit": 8192, "asked": 9001, **values}
        more = dict(self.faults[name])
        return self.refuse(more.pop("status"), more.pop("message").format(**given), **more)


def _filled(form: Any, given: Mapping[str, Any], present: set[str]) -> Any:
    """Returns the form with each $name filled in, and each $name? where it is `present`."""
    if isinstance(form, dict):
        kept = {name: part for name, part in form.items() if not str(part).endswith("?") or part[1:-1] in present}
        return {name: _filled(part, given, present) for name, part in kept.items()}
    if isinstance(form, list):
        return [_filled(part, given, present) for part in form]
    if not isinstance(form, str) or "$" not in form:
        return form
    name = form[1:].rstrip("?")
    return given[name] if name in given else Template(form).safe_substitute(given)


def _rule(row: Any) -> Rule:
    if isinstance(row, str):
        named: Rule = getattr(rules, row)
        return named
    ((name, given),) = row.items()
    return partial(getattr(rules, name), **(given if isinstance(given, dict) else {"message": given}))


def _vendor(name: str, row: dict[str, Any]) -> Vendor:
    held: list[Rule] = [partial(rules.listed, row=each) for each in row.pop("refuses", ())]
    held += map(_rule, row.pop("rules", ()))
    return Vendor(name=name, shape=Shape(**row.pop("shape")), rules=tuple(held), **row)


VENDORS: Final[Mapping[str, Vendor]] = {
    name: _vendor(name, row)
    for name, row in yaml.safe_load(Path(__file__).with_name("vendors.yaml").read_text("utf-8")).items()
}
#: Those that run on the person's own machine, and all others.
LOCAL: Final = ("ollama", "llamacpp", "vllm", "lmstudio", "sglang", "koboldcpp")
HOSTED: Final = tuple(name for name in VENDORS if name not in LOCAL)
#: What Anthropic's newest models refuse.
NEWEST: Final = (
    partial(rules.claude_options, newest=True, most=128_000), rules.claude_messages, rules.claude_thinking,
    rules.claude_prefill,
)  # fmt: skip
