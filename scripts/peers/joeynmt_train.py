"""JoeyNMT's training from beginning to end, with sizes and batches as given. It does not sort sentences by length.

It saves when it validates, and so does that with three sentences.

    python joeynmt_train.py JOB        (a Job as JSON; needs joeynmt and importlib_metadata)

Prints one line of JSON.
"""

import json
import sys
from pathlib import Path

import watching
from joeynmt.__main__ import main
from meter import Job

NEVER = 10**6


def config(job: Job, vocabulary: Path) -> dict:
    side = {"max_length": job.longest, "level": "word", "voc_file": str(vocabulary)}
    stack = {
        "type": "transformer",
        "num_layers": job.layers,
        "num_heads": job.heads,
        "hidden_size": job.dim,
        "ff_size": job.ffn_dim,
        "dropout": job.dropout,
        "layer_norm": "pre",
        "embeddings": {"embedding_dim": job.dim, "scale": True, "dropout": job.dropout},
    }
    here = Path(job.folder)
    for side_name in ("src", "tgt"):
        few = (here / f"ids.{side_name}").read_text().splitlines(keepends=True)[:3]
        (here / f"few.{side_name}").write_text("".join(few))
    return {
        "name": "bench",
        "joeynmt_version": "2.3.0",
        "model_dir": str(here / "joeynmt"),
        "random_seed": job.seed,
        "use_cuda": False,
        "fp16": False,
        "data": {
            "dataset_type": "plain",
            "train": str(here / "ids"),
            "dev": str(here / "few"),
            "src": {"lang": "src", **side},
            "trg": {"lang": "tgt", **side},
            "special_symbols": {
                **dict(zip(("unk_token", "pad_token", "bos_token", "eos_token"), watching.SPECIALS, strict=True)),
                **{f"{name}_id": number for number, name in enumerate(("unk", "pad", "bos", "eos"))},
            },
        },
        "testing": {"beam_size": 1, "batch_size": 100, "batch_type": "sentence", "eval_metrics": []},
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "learning_rate": job.rate,
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": job.warm_up,
            "clip_grad_norm": 1.0,
            "loss": "crossentropy",
            "label_smoothing": 0.1,
            "normalization": "tokens",
            "batch_type": "token",
            "batch_size": job.batch_tokens,
            "updates": NEVER,
            "epochs": NEVER,
            "validation_freq": job.save_every or NEVER,
            "keep_best_ckpts": -1,  # all
            "logging_freq": job.save_every or NEVER,
            "early_stopping_metric": "loss",
            "overwrite": True,
        },
        "model": {"tied_embeddings": True, "tied_softmax": True, "encoder": stack, "decoder": stack},
    }


job = Job.given()
vocabulary = Path(job.folder) / "joeynmt.vocabulary"
watching.write_vocabulary(job, vocabulary, [])  # it adds the special ones
path = Path(job.folder) / "joeynmt.json"  # which is YAML too
path.write_text(json.dumps(config(job, vocabulary)))
if not job.save_every:
    watching.watch(job)
sys.argv = ["joeynmt", "train", str(path), "--skip-test"]
main()
