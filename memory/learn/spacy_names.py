"""Runs spaCy's English model in a process of its own: texts as a JSON list on standard input, names on standard output.

The names of each text are a list of [label, name]. Invariants: the process ends after one list, so the model's 150 MB
are freed; its memory is bounded; it opens no file once the model is loaded.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from importlib.util import find_spec

from memory.child import limit

#: spaCy's own small English model.
MODEL = "en_core_web_sm"
#: The advice to an operator without it.
INSTALL = f"Install it: pip install 'remora[entities]' && python -m spacy download {MODEL}"
#: Address space; the model takes 0.6 GB of it.
_MEMORY = 2 * 1024**3


def is_installed() -> bool:
    return bool(find_spec("spacy") and find_spec(MODEL))


def main() -> None:
    limit("RLIMIT_CORE", 0)
    limit("RLIMIT_AS", _MEMORY)
    read = import_module(MODEL).load(disable=["parser", "lemmatizer", "tagger", "attribute_ruler"])
    list(read.pipe(["Ada moved to Lisbon."]))
    limit("RLIMIT_NOFILE", 0)
    texts = json.load(sys.stdin)
    json.dump([[[entity.label_, entity.text] for entity in each.ents] for each in read.pipe(texts)], sys.stdout)


if __name__ == "__main__":
    main()
