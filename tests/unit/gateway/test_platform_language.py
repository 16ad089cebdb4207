"""The language in which the author of a message uses the platform."""

from __future__ import annotations

from gateway.wording.texts import spoken
from languages import Language
from tests.kit.tables import each_row


@each_row(
    ("code", "language"), [("pt-BR", "en"), ("zh-CN", "zh"), ("de", "de"), ("FR", "fr"), ("", "en"), ("tlh", "en")]
)
def test_a_language_with_a_region_is_that_language(code: str, language: Language) -> None:
    """Platforms name both; where there are no texts, the default stands."""
    assert spoken(code or None, "en") == language
