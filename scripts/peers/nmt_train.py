"""The updates of `nmt train`, on what `nmt prepare` made in the job's folder; nothing is logged, validated or saved.

    python nmt_train.py JOB        (a Job as JSON)

Prints one line of JSON.
"""

from pathlib import Path

from meter import Job, Meter

from nmt import variants
from nmt.data.prepare import open_prepared
from nmt.run import Run
from nmt.signals import Signals
from nmt.trainer import Sets, Trainer


def main() -> None:
    job = Job.given()
    sizes = {"dim": job.dim, "heads": job.heads, "ffn_dim": job.ffn_dim, "dropout": job.dropout}
    model = sizes | {"encoder_layers": job.layers, "decoder_layers": job.layers}
    train = {"steps": 10**6, "batch_tokens": job.batch_tokens, "threads": job.threads, "precision": job.precision}
    settings = [f"model.{key}={value}" for key, value in model.items()]
    settings += [f"train.{key}={value}" for key, value in train.items()]
    config = variants.load(str(Path(job.folder) / "config.yaml"), settings)
    prepared = open_prepared(Run(config.run_dir))
    pairs, tokenizer = prepared.train(), prepared.tokenizer()
    sets = Sets(pairs, prepared.shares(config), {}, tokenizer, prepared.directory, prepared.digest())
    trainer, meter = Trainer(config, sets, Signals()), Meter(job.seconds)
    over = False
    while not over:
        trainer.state.since_log = {}
        trainer.update()
        sums = trainer.state.since_log
        over = meter.step(int(sums["tokens"]), sums["padding"])
    trainer.close()


main()
