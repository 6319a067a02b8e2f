"""The Translator of `nmt translate`, on text; the others are given ids.

    python nmt_translate.py JOB        (a Job of translating.py as JSON)

Prints one line of JSON.
"""

from pathlib import Path
from typing import Any

from translating import EXTRA, RATIO, Job, contend

from nmt.choice import options_of
from nmt.search.methods import SEARCHES
from nmt.translate import Translator

job = Job.given()
name = "beam" if job.beam > 1 else "greedy"
search: dict[str, Any] = {"name": name, "length_penalty": 1.0, "max_ratio": RATIO, "max_extra": EXTRA}
search |= {"beam": job.beam} if job.beam > 1 else {}
if job.steps:
    search |= {"max_ratio": 0.0, "max_extra": job.steps}
    search |= {"min_length": job.steps} if "min_length" in options_of(SEARCHES[name]) else {}
translator = Translator(job.model, "cpu", job.precision, search=search, workers=job.cores)
lines = (Path(job.folder) / "src").read_text().split("\n")[:-1]
found = contend(job, lines, {f"{translator.workers} workers": lambda some: list(translator.stream(some))})
Path(job.out).write_text("".join(f"{one.text}\n" for one in found))
if job.steps and any(one.tokens != job.steps for one in found):
    raise SystemExit(f"not all translations have {job.steps} pieces")
