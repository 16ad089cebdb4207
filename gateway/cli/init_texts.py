"""The texts of `remora init`, in the languages that have an `init.yaml`."""

from __future__ import annotations

from collections.abc import Mapping

from languages import LANGUAGES, Language, has, part

#: The languages in which it asks.
SPOKEN = tuple(code for code in LANGUAGES if has(code, "init"))


def texts(language: Language) -> Mapping[str, str]:
    data: Mapping[str, str] = part(language, "init")
    return data


def language(environment: Mapping[str, str]) -> Language:
    """Returns the language of the terminal by the variables that programs go by, the strongest first."""
    named = (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    code = next(filter(None, named), "")[:2].lower()
    return code if code in SPOKEN else LANGUAGES[0]
