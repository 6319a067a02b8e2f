"""Hugging Face's generate with our weights: M2M100 has our architecture with the norm first, Marian with the norm last.

    python hf_translate.py JOB        (a Job of translating.py as JSON; needs transformers and safetensors)

Prints one line of JSON.
"""

import math
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import M2M100Config, M2M100ForConditionalGeneration, MarianConfig, MarianMTModel
from translating import Job, contend, write_ids

PAD, BOS, EOS = 0, 2, 3
POSITIONS = 4096
OURS = {  # a layer's parts by our names, and by theirs; a fused matrix has several
    "self_attention.qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attention.out": ("self_attn.out_proj",),
    "self_residual.norm": ("self_attn_layer_norm",),
    "src_attention.q": ("encoder_attn.q_proj",),
    "src_attention.kv": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "src_attention.out": ("encoder_attn.out_proj",),
    "src_residual.norm": ("encoder_attn_layer_norm",),
    "ffn.inner": ("fc1",),
    "ffn.outer": ("fc2",),
    "ffn_residual.norm": ("final_layer_norm",),
}

job = Job.given()
torch.set_num_threads(job.cores)
ours = job.architecture
for key, value in (("norm", "layer"), ("tie", "all"), ("position", {"name": "sinusoidal"})):
    if ours[key] != value:
        raise SystemExit(f"no model of transformers has model.{key}: {ours[key]}")


def renamed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    found = {}
    for name, tensor in tensors.items():
        side, _, rest = name.partition(".")
        if name == "src_embedding.weight":
            found |= {f"model.{at}.weight": tensor for at in ("shared", "encoder.embed_tokens", "decoder.embed_tokens")}
            found["lm_head.weight"] = tensor
        elif side in ("encoder_norm", "decoder_norm"):
            found[f"model.{side.removesuffix('_norm')}.layer_norm.{rest}"] = tensor
        else:
            number, _, part = rest.partition(".")
            part, _, kind = part.rpartition(".")
            for theirs, piece in zip(OURS[part], tensor.chunk(len(OURS[part])), strict=True):
                found[f"model.{side}.layers.{number}.{theirs}.{kind}"] = piece
    return found


def sinusoids(dim: int) -> Tensor:
    frequencies = torch.exp(torch.arange(dim // 2) * (-math.log(10_000) / max(1, dim // 2 - 1)))
    angles = torch.arange(POSITIONS)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def load() -> torch.nn.Module:
    tensors = load_file(Path(job.model) / "model.safetensors")
    sizes = {
        f"{side}_{theirs}": ours[key.format(side)]
        for side in ("encoder", "decoder")
        for theirs, key in (("layers", "{}_layers"), ("attention_heads", "heads"), ("ffn_dim", "ffn_dim"))
    }
    maker, kind = (
        (M2M100ForConditionalGeneration, M2M100Config) if ours["norm_first"] else (MarianMTModel, MarianConfig)
    )
    model = maker(
        kind(
            vocab_size=len(tensors["src_embedding.weight"]),
            d_model=ours["dim"],
            **sizes,
            activation_function=ours["activation"],
            scale_embedding=True,
            max_position_embeddings=POSITIONS,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            decoder_start_token_id=BOS,
            forced_eos_token_id=None,
        )
    )
    fit = model.load_state_dict(renamed(tensors), strict=False)
    wrong = [name for name in fit.missing_keys if "embed_positions" not in name and name != "final_logits_bias"]
    if wrong or fit.unexpected_keys:
        raise SystemExit(f"weights do not fit: {wrong} {fit.unexpected_keys}")
    for side in (model.model.encoder, model.model.decoder):
        table = sinusoids(ours["dim"])
        if ours["norm_first"]:  # counts from the padding's id on, which has a position of its own
            side.embed_positions.weights = torch.cat([torch.zeros(1, ours["dim"]), table])
        else:
            side.embed_positions.weight.data = table
    return model.eval().to({"fp32": torch.float32, "bf16": torch.bfloat16}[job.precision])


model = load()


def translating(batch: int) -> Callable[[list[list[int]]], list[list[int]]]:
    def translate(some: list[list[int]]) -> list[list[int]]:
        order = sorted(range(len(some)), key=lambda i: -len(some[i]))
        found: list[list[int]] = [[] for _ in some]
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            rows = [torch.tensor([*some[i], EOS]) for i in chosen]
            src = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
            out = model.generate(
                input_ids=src,
                attention_mask=(src != PAD).long(),
                do_sample=False,
                num_beams=job.beam,
                early_stopping=job.beam > 1,  # when as many hypotheses have ended as there are beams
                length_penalty=1.0,
                min_new_tokens=job.steps,
                max_new_tokens=job.longest([some[i] for i in chosen]),
                suppress_tokens=job.forbidden,
            )
            for i, ids in zip(chosen, out[:, 1:].tolist(), strict=True):
                found[i] = ids[: ids.index(EOS)] if EOS in ids else [token for token in ids if token != PAD]
        return found

    return translate


with torch.inference_mode():
    write_ids(job, contend(job, job.ids(), {f"batch {batch}": translating(batch) for batch in (32, 64)}))
