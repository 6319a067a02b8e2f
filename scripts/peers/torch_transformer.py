"""torch.nn.Transformer, with embeddings and a tied projection around it, in a plain loop.

    python torch_transformer.py JOB        (a Job as JSON)

Prints one line of JSON.
"""

import math

import plain_loop
import torch
from meter import Job
from torch import Tensor, nn
from torch.nn import functional as F


class Seq2Seq(nn.Module):
    """Dropout where the others have it: on embeddings and on what each sublayer adds."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.embedding = nn.Embedding(job.pieces, job.dim, padding_idx=plain_loop.PAD)
        nn.init.normal_(self.embedding.weight, std=job.dim**-0.5)
        self.body = nn.Transformer(
            job.dim, job.heads, job.layers, job.layers, job.ffn_dim, job.dropout, batch_first=True, norm_first=True
        )
        for module in self.body.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            elif isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
                module.dropout = nn.Identity()  # inside the feed-forward sublayer
        self.dropout = nn.Dropout(job.dropout)
        self.register_buffer("positions", self._positions(job.longest, job.dim))

    @staticmethod
    def _positions(length: int, dim: int) -> Tensor:
        rates = torch.exp(torch.arange(0, dim, 2) * (-math.log(10_000) / dim))
        angles = torch.arange(length)[:, None] * rates
        return torch.cat([angles.sin(), angles.cos()], dim=1)

    def _embed(self, ids: Tensor) -> Tensor:
        scaled = self.embedding(ids) * self.embedding.embedding_dim**0.5
        return self.dropout(scaled + self.positions[: ids.shape[1]])

    def forward(self, src: Tensor, before: Tensor) -> Tensor:
        padded, length = src == plain_loop.PAD, before.shape[1]
        states = self.body(
            self._embed(src),
            self._embed(before),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            tgt_is_causal=True,
            src_key_padding_mask=padded,
            memory_key_padding_mask=padded,
        )
        return F.linear(states, self.embedding.weight)


given = Job.given()
model = Seq2Seq(given)
plain_loop.run(given, model, model)
