"""The jobs of the night in the order in which they run."""

from __future__ import annotations

from typing import Final

from memory.upkeep import compress, decay, enrich, manner, merge, reflect
from memory.upkeep.job import Job

TABLE: Final[tuple[Job, ...]] = (enrich.JOB, compress.JOB, reflect.JOB, merge.JOB, decay.JOB, manner.JOB)
