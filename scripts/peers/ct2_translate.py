"""CTranslate2: as many workers as cores, or one with as many threads; batches of 32 and 64 sentences.

    python ct2_translate.py JOB        (a Job of translating.py as JSON; needs ctranslate2)

Prints one line of JSON.
"""

import json
from collections.abc import Callable
from pathlib import Path

import ctranslate2
from translating import Job, contend, write_ids

job = Job.given()
folder = Path(job.model)


def vocabulary(side: str) -> list[str]:
    shared = folder / "shared_vocabulary.json"
    return json.loads((shared if shared.exists() else folder / f"{side}_vocabulary.json").read_text())


src, tgt = vocabulary("source"), {piece: number for number, piece in enumerate(vocabulary("target"))}
forbidden = [[list(tgt)[number]] for number in job.forbidden]
sources = [[src[number] for number in ids] for ids in job.ids()]


def translating(workers: int, batch: int) -> Callable[[list[list[str]]], list[list[str]]]:
    translator = ctranslate2.Translator(
        str(folder), compute_type=job.precision, inter_threads=workers, intra_threads=job.cores // workers
    )

    def translate(some: list[list[str]]) -> list[list[str]]:
        found = translator.translate_batch(
            some,
            beam_size=job.beam,
            max_batch_size=batch,
            max_input_length=0,
            min_decoding_length=job.steps,
            max_decoding_length=job.longest(some),
            suppress_sequences=forbidden,
        )
        return [one.hypotheses[0] for one in found]

    return translate


settings = {
    f"{workers} x {job.cores // workers}, batch {batch}": translating(workers, batch)
    for workers in dict.fromkeys((job.cores, 1))
    for batch in (32, 64)
}
found = contend(job, sources, settings)
write_ids(job, [[tgt[piece] for piece in pieces] for pieces in found])
