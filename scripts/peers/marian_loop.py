"""Hugging Face's Marian model in a plain loop.

    python marian_loop.py JOB        (a Job as JSON; needs transformers)

Prints one line of JSON.
"""

import plain_loop
from meter import Job
from transformers import MarianConfig, MarianMTModel

job = Job.given()
sizes = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in (("layers", job.layers), ("attention_heads", job.heads), ("ffn_dim", job.ffn_dim))
}
model = MarianMTModel(
    MarianConfig(
        vocab_size=job.pieces,
        d_model=job.dim,
        **sizes,
        dropout=job.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=job.longest,
        pad_token_id=plain_loop.PAD,
        eos_token_id=plain_loop.EOS,
        decoder_start_token_id=plain_loop.BOS,
        use_cache=False,
    )
)
plain_loop.run(
    job,
    model,
    lambda src, before: (
        model(input_ids=src, attention_mask=(src != plain_loop.PAD).long(), decoder_input_ids=before).logits
    ),
)
