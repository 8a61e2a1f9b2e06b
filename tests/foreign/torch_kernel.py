"""A pooled indexer in PyTorch (vllm_fp8): python3 torch_kernel.py FOLDER, where `indexpool export` wrote."""
import json
import pathlib
import sys

import torch
from safetensors import safe_open
from safetensors.torch import save_file


def quantised(x):  # Hadamard, then a power-of-two scale and e4m3 codes for each vector
    x = x.float()
    for i in range(x.shape[-1].bit_length() - 1):
        a, b = x.unflatten(-1, (-1, 2, 2**i)).unbind(-2)
        x = torch.stack([a + b, a - b], -2).flatten(-3)
    x = (x * x.shape[-1] ** -0.5).bfloat16().double()
    scale = torch.exp2(torch.ceil(torch.log2(x.abs().amax(-1).clamp(min=1e-4) / 448)))
    return (x / scale[..., None]).float().to(torch.float8_e4m3fn), scale.float()


folder = pathlib.Path(sys.argv[1])
device = "cuda" if torch.cuda.is_available() else "cpu"
for entry in json.loads((folder / "manifest.json").read_text())["cases"]:
    with safe_open(folder / entry["inputs"], "pt", device=device) as file:
        case, x = json.loads(file.metadata()["case"]), {name: file.get_tensor(name) for name in file.keys()}
    kpool, out = case["kpool"], {}
    rows = torch.cat([f + torch.arange(n // kpool * kpool) for _, n, f in x["sequences"].tolist()])
    keys, gates = (x[name][rows].unflatten(0, (-1, kpool)).float() for name in ("keys", "gate_scores"))
    pooled = (torch.softmax(gates + x["ape"], 1) * keys).sum(1).bfloat16()
    out["pool_codes"], out["pool_scales"] = quantised(pooled)
    out["q_codes"], out["q_scales"] = quantised(x["queries"])
    weights = x["head_weights"] * case["logit_scale"] * out["q_scales"]
    counts = [n // kpool for _, n, _ in x["sequences"].tolist()]
    out["logits"], first = torch.zeros(len(weights), max(counts + [1]), device=device), 0
    for (_, n, row), count in zip(x["sequences"].tolist(), counts):
        dots = out["q_codes"][row : row + n].float() @ out["pool_codes"][first : first + count].float().T
        scores = (dots.relu() * weights[row : row + n, :, None]).sum(1)
        out["logits"][row : row + n, :count] = scores * out["pool_scales"][first : first + count]
        first += count
    save_file({name: tensor.cpu().contiguous() for name, tensor in out.items()}, folder / entry["outputs"])
