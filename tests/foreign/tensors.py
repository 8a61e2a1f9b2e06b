"""safetensors with numpy alone: bf16 reads as float32, FP8 as its bytes."""
import json
import struct

import numpy as np

TYPES = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I8": "i1", "U8": "u1", "F8_E4M3": "u1", "BF16": "<u2"}
NAMES = {"float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "int8": "I8", "uint8": "U8"}


def read(path):
    """The case's description and its tensors."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header, tensors = json.loads(data[8 : 8 + length]), {}
    case = json.loads(header.pop("__metadata__", {}).get("case", "{}"))
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
        if entry["dtype"] == "BF16":
            values = (values.astype("<u4") << 16).view("<f4")
        tensors[name] = values
    return case, tensors


def write(path, tensors):
    """A value is an array, or ("BF16", its bits)."""
    header, blocks, offset = {}, [], 0
    for name, value in tensors.items():
        dtype, array = value if isinstance(value, tuple) else (NAMES[value.dtype.name], value)
        blocks.append(np.ascontiguousarray(array).tobytes())
        end = offset + len(blocks[-1])
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blocks))
