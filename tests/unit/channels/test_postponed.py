"""aiogram's types are built when they are used."""

from __future__ import annotations

import json
import subprocess
import sys

_PROGRAM = """
import json
from channels.telegram import TelegramBot
import aiogram.methods, aiogram.types
from pydantic import BaseModel

models = [
    value
    for module in (aiogram.types, aiogram.methods)
    for value in (getattr(module, name) for name in module.__all__)
    if isinstance(value, type) and issubclass(value, BaseModel)
]
built = sum(model.__pydantic_complete__ for model in models)
refused = []
for model in models:
    try:
        model.model_rebuild()
    except Exception as error:
        refused.append(f"{model.__name__}: {error}")
print(json.dumps({"models": len(models), "built": built, "refused": refused}))
"""


def test_importing_telegram_builds_few_types_and_every_type_can_be_built_later() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["models"] > 500
    assert told["built"] < told["models"] / 4
    assert told["refused"] == []
