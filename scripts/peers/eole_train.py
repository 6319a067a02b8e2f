"""`eole train` (OpenNMT's successor) from beginning to end, with sizes and batches as given.

The optimisation is the usual one of a Transformer in OpenNMT: Adam, 0.9 and 0.98, and a rate that rises along a line
and then falls with one over the square root of the steps. Its one rate of dropout holds inside feed-forward layers too.

    python eole_train.py JOB        (a Job as JSON; needs eole and aiohttp)

Prints one line of JSON.
"""

import json
import math
import sys
from pathlib import Path

import watching
from eole.bin.main import main
from meter import Job

NEVER = 10**6


def config(job: Job, vocabulary: Path) -> dict:
    here = Path(job.folder)
    training = {
        "model_path": str(here / "eole"),
        "train_steps": NEVER,
        "valid_steps": NEVER,
        "save_checkpoint_steps": job.save_every or NEVER,
        "bucket_size": len(job.ids("src")),  # batches of like length from the whole corpus
        "num_workers": 0,
        "world_size": 1,
        "gpu_ranks": [],
        "batch_type": "tokens",
        "batch_size": job.batch_tokens,
        "accum_count": [1],
        "accum_steps": [0],
        "dropout": [job.dropout],
        "attention_dropout": [0.0],
        "dropout_steps": [0],
        "compute_dtype": job.precision,
        "optim": "adam",
        "adam_beta2": 0.98,
        "decay_method": "noam",
        "learning_rate": job.rate * math.sqrt(job.dim * job.warm_up),  # which is what noam divides by at the peak
        "warmup_steps": job.warm_up,
        "max_grad_norm": 1.0,
        "label_smoothing": 0.1,
        "normalization": "tokens",
        "param_init_method": "xavier_uniform",
    }
    model = {
        "architecture": "transformer",
        "layers": job.layers,
        "hidden_size": job.dim,
        "heads": job.heads,
        "transformer_ff": job.ffn_dim,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "embeddings": {"word_vec_size": job.dim, "position_encoding_type": "SinusoidalInterleaved"},
    }
    return {
        "save_data": str(here / "eole"),
        "overwrite": True,
        "report_every": job.save_every or NEVER,
        "seed": job.seed,
        "src_vocab": str(vocabulary),
        "tgt_vocab": str(vocabulary),
        "share_vocab": True,
        "vocab_size_multiple": 1,
        "data": {"pairs": {"path_src": str(here / "ids.src"), "path_tgt": str(here / "ids.tgt")}},
        "training": training,
        "model": model,
    }


job = Job.given()
vocabulary = Path(job.folder) / "eole.vocabulary"
watching.write_vocabulary(job, vocabulary, watching.SPECIALS)
path = Path(job.folder) / "eole.json"  # which is YAML too
path.write_text(json.dumps(config(job, vocabulary)))
if not job.save_every:
    watching.watch(job)
sys.argv = ["eole", "train", "-config", str(path)]
main()
