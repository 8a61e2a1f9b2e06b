"""The pooling of a pooled indexer in Triton (mode bf16): python3 triton_kernel.py FOLDER, where `indexpool export`
wrote. Needs a GPU: Triton 3.6's interpreter truncates to bf16 where a GPU rounds, and `check` refuses that."""
import json
import pathlib
import sys

import torch
import triton
import triton.language as tl
from safetensors import safe_open
from safetensors.torch import save_file


@triton.jit
def pool(keys, gate_scores, ape, first_rows, pooled, KPOOL: tl.constexpr, DIM: tl.constexpr):
    """One program a pool: a softmax over its KPOOL tokens, channel by channel."""
    tokens, channels = tl.arange(0, KPOOL)[:, None], tl.arange(0, DIM)[None, :]
    at = (tl.load(first_rows + tl.program_id(0)) + tokens) * DIM + channels
    z = tl.load(gate_scores + at).to(tl.float32) + tl.load(ape + tokens * DIM + channels)
    e = tl.exp(z - tl.max(z, 0)[None, :])
    mean = tl.sum(e * tl.load(keys + at).to(tl.float32), 0) / tl.sum(e, 0)
    tl.store(pooled + tl.program_id(0) * DIM + tl.arange(0, DIM), mean.to(tl.bfloat16))


device = "cuda"
folder = pathlib.Path(sys.argv[1])
for entry in json.loads((folder / "manifest.json").read_text())["cases"]:
    with safe_open(folder / entry["inputs"], "pt", device=device) as file:
        case, x = json.loads(file.metadata()["case"]), {name: file.get_tensor(name) for name in file.keys()}
    kpool, dim = case["kpool"], case["head_dim"]
    first_rows = torch.cat([f + torch.arange(0, n // kpool * kpool, kpool) for _, n, f in x["sequences"].tolist()])
    pooled = torch.empty(len(first_rows), dim, dtype=torch.bfloat16, device=device)
    if len(first_rows) > 0:
        pool[(len(first_rows),)](x["keys"], x["gate_scores"], x["ape"], first_rows.to(device), pooled, kpool, dim)
    save_file({"pooled": pooled.cpu()}, folder / entry["outputs"])
