"""Imports aiogram without building the parsers of Telegram types that nobody uses.

aiogram builds a parser for each of its 700 types and methods when it is imported, which takes 2.1 s of the processor
and 140 MB; a bot needs a few of them. Its types ask pydantic to build a parser on first use (`defer_build`), but then
aiogram has all of them built at once, because pydantic could not find the names in their annotations later. Here that
call does nothing while aiogram is imported, and the names are put where pydantic looks for them: into each type's own
module. A parser is the same whenever it is built. If aiogram stops asking for them at once, this has no effect.

Invariant: No module imports aiogram before this one.
"""

from __future__ import annotations

import inspect
import re
import sys

from pydantic import BaseModel

_rebuild = BaseModel.__dict__["model_rebuild"]
BaseModel.model_rebuild = classmethod(lambda cls, **options: None)  # type: ignore[method-assign, assignment]
try:
    import aiogram
finally:
    BaseModel.model_rebuild = _rebuild  # type: ignore[method-assign]


def _name_annotations() -> None:
    """Puts each type named in an annotation of an aiogram type into the module of that type, and of those derived."""
    types = {name: getattr(aiogram.types, name) for name in aiogram.types.__all__}
    for model in types.values():
        for base in getattr(model, "__mro__", ()):
            for annotation in inspect.get_annotations(base).values():
                for name in re.findall(r"\w+", str(annotation)):
                    if name in types:
                        vars(sys.modules[model.__module__]).setdefault(name, types[name])


_name_annotations()
