"""A pooled indexer in numpy: python3 numpy_kernel.py FOLDER, where `indexpool export` wrote."""
import json
import pathlib
import sys

import numpy as np
import tensors

CODES = np.array([(c & 7 | (8 if c >> 3 else 0)) * 2.0 ** (max(c >> 3, 1) - 10) for c in range(127)])


def bf16(x):  # to nearest, ties to even
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return (bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def e4m3(x):  # the byte of the nearest code; |x| <= 448
    exponent = np.maximum(np.frexp(x)[1] - 1, -6)
    rounded = np.rint(np.abs(x) / 2.0 ** (exponent - 3)) * 2.0 ** (exponent - 3)
    return (np.searchsorted(CODES, rounded) | np.signbit(x) << 7).astype(np.uint8)


def quantised(x):  # Hadamard, a power-of-two scale for each vector, codes; and code * scale
    for i in range(int(np.log2(x.shape[-1]))):
        pairs = x.reshape(*x.shape[:-1], -1, 2, 2**i)
        x = np.stack([pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]], -2).reshape(x.shape)
    x = bf16(x * np.float32(x.shape[-1] ** -0.5))
    amax = np.maximum(np.abs(x).max(-1), np.float32(1e-4))
    scale = 2.0 ** np.ceil(np.log2(amax / 448.0))
    codes = e4m3(x / scale[..., None])
    return codes, scale.astype(np.float32), np.where(codes >> 7, -1, 1) * CODES[codes & 127] * scale[..., None]


def run(case, x):
    kpool, heads, topk = case["kpool"], case["heads"], case["topk"]
    fp8, narrow = case["mode"] == "vllm_fp8", bf16 if case["mode"] != "hf_f32" else np.float32
    rows = np.concatenate([f + np.arange(n // kpool * kpool) for _, n, f in x["sequences"]]).astype(int)
    keys, gates = (x[name][rows].reshape(-1, kpool, case["head_dim"]) for name in ("keys", "gate_scores"))
    z = gates + x["ape"]
    z = np.exp(z - z.max(1, keepdims=True))
    pools = narrow((z * keys).sum(1) / z.sum(1))
    out = {"pooled": ("BF16", (pools.view(np.uint32) >> 16).astype(np.uint16)) if narrow is bf16 else pools}
    queries = x["queries"]
    if fp8:
        codes, scales, pools = quantised(pools)
        out["pool_rows"] = np.concatenate([codes, scales[:, None].view(np.uint8)], 1)
        out["q_codes"], out["q_scales"], queries = quantised(queries)
    weights, first = x["head_weights"] * np.float32(case["logit_scale"]), 0
    counts = [n // kpool for _, n, _ in x["sequences"]]
    logits = np.zeros((len(queries), max(counts + [1])), np.float32)
    selection = np.full((len(queries), topk + (kpool - 1) * case["always_select_tail"]), -1, np.int32)
    for (padding, length, row), count in zip(x["sequences"], counts):
        mine = queries[row : row + length].astype(np.float32) @ pools[first : first + count].T.astype(np.float32)
        logits[row : row + length, :count] = (np.maximum(mine, 0) * weights[row : row + length, :, None]).sum(1)
        first += count
        for t in range(length):
            visible = (t + 1) // kpool
            best = np.sort(np.argsort(-logits[row + t, :visible], kind="stable")[: topk // kpool])
            selection[row + t, : len(best) * kpool] = (best[:, None] * kpool + np.arange(kpool)).ravel() + padding
            if case["always_select_tail"]:
                selection[row + t, topk : topk + t + 1 - visible * kpool] = np.arange(visible * kpool, t + 1) + padding
    return {**out, "logits": logits, "selection": selection}


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    for entry in json.loads((folder / "manifest.json").read_text())["cases"]:
        tensors.write(folder / entry["outputs"], run(*tensors.read(folder / entry["inputs"])))
