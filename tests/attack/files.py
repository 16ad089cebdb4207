"""Files that take long to read, from one person, while another one sends a small one."""

from __future__ import annotations

import asyncio
import time
import zlib

from tests.attack.frame import BEN, EVE, Attack, scenario
from tests.attack.model import Says


@scenario("files")
async def files(attack: Attack) -> None:
    many = 8 if attack.short else 10
    slow, small = _pdf(20_000 if attack.short else 100_000), _pdf(1)
    async with attack.bot() as bot:
        bot.model.script = lambda _body: Says(text="Read.")
        await bot.ask("hello", user=BEN)
        began = time.monotonic()
        await bot.ask("one", user=EVE, document=slow, filename="one.pdf", mime="application/pdf", seconds=60)
        alone = time.monotonic() - began
        for n in range(many):
            await bot.telegram.say(f"read {n}", user=EVE, document=slow, filename=f"{n}.pdf", mime="application/pdf")
        await asyncio.sleep(0.5)
        began = time.monotonic()
        answer = await bot.ask(
            "mine", user=BEN, document=small, filename="mine.pdf", mime="application/pdf", seconds=30 * alone
        )
        waited = time.monotonic() - began
        # Two are read at a time: behind all of them it would wait as long as half of them take.
        attack.count(
            answer is None or waited > alone * many / 3,
            f"a small file waited {waited:.1f} s behind {many} that take {alone:.1f} s each",
        )
        attack.count(bot.died() or await bot.health() is None, "it does not live on")


def _pdf(lines: int) -> bytes:
    body = b"BT /F1 9 Tf 1 0 0 1 9 9 Tm\n" + b"(so it is) Tj 0 -9 Td\n" * lines + b"ET"
    packed = zlib.compress(body, 9)
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    made, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, start=1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(made)
    made += b"xref\n0 6\n0000000000 65535 f \n" + table
    return made + b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % start
