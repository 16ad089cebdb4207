"""The jobs of the night in the order in which they run."""

from __future__ import annotations

from typing import Final

from memory.jobs import compare, compress, decay, enrich, merge, reflect, style
from memory.jobs.base import Job

TABLE: Final[tuple[Job, ...]] = (enrich.JOB, compress.JOB, reflect.JOB, merge.JOB, compare.JOB, decay.JOB, style.JOB)
