#!/usr/bin/env python3
"""Writes tests/io/data with the reference implementations (packages numpy and safetensors), so that
the tests read files of other writers. The files are kept; run this only to change them.

usage: make_fixtures.py
"""
import json
import pathlib
import struct

import numpy as np
import safetensors
from safetensors.numpy import save_file

DATA = pathlib.Path(__file__).resolve().parent / "data"
GRID = [[1, 2, 3], [4, 5, 6]]


def write_npy():
    np.save(DATA / "f4.npy", np.array([[1.5, -2, 3], [4, 5, 6.25]], "<f4"))
    np.save(DATA / "f8_fortran.npy", np.asfortranarray(np.array(GRID, "<f8")))
    np.save(DATA / "f4_fortran3.npy",
            np.asfortranarray(np.arange(24, dtype="<f4").reshape(2, 3, 4)))
    np.save(DATA / "f4_big_endian.npy", np.array(GRID, ">f4"))
    np.save(DATA / "i8_scalar.npy", np.int64(-(2**62)))
    np.save(DATA / "b1.npy", np.array([True, False, True]))
    np.save(DATA / "f2_empty.npy", np.zeros((2, 0, 3), "<f2"))
    for version in (2, 3):
        with open(DATA / f"u4_version{version}.npy", "wb") as file:
            np.lib.format.write_array(file, np.array(GRID, "<u4"), version=(version, 0))


def write_safetensors():
    # One tensor of each type; the bytes count up, so that a shifted read shows.
    sizes = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I8": 1, "U32": 4, "U8": 1}
    entries, data = {"__metadata__": {"format": "pt"}}, b""
    for dtype, size in sizes.items():
        begin = len(data)
        data += bytes(range(6 * size))
        entries[f"of {dtype}"] = {"dtype": dtype, "shape": [2, 3], "data_offsets": [begin, len(data)]}
    entries["of BOOL"] = {"dtype": "BOOL", "shape": [2], "data_offsets": [len(data), len(data) + 2]}
    data += b"\1\0"
    entries["empty"] = {"dtype": "F32", "shape": [2, 0], "data_offsets": [len(data), len(data)]}
    entries["scalar"] = {"dtype": "I8", "shape": [], "data_offsets": [len(data), len(data) + 1]}
    data += b"\x85"
    header = json.dumps(entries).encode()
    file = struct.pack("<Q", len(header)) + header + data
    assert len(safetensors.deserialize(file)) == len(entries) - 1, "the reference refuses it"
    (DATA / "every_type.safetensors").write_bytes(file)

    tensors = {
        "h.0.attn.weight": np.array([[0.5, -1], [2, 3.25]], "<f4"),
        "h.0.attn.bias": np.array([0.25, 8], "<f2"),
        "ids": np.array([7, -(2**40)], "<i8"),
        "mask": np.array([[True], [False]]),
        "caf\u00e9": np.array(3, "<u4"),
        "none": np.zeros((0, 4), "<f8"),
        "bytes": np.array([250, 251, 252], "u1"),
    }
    save_file(tensors, DATA / "mixed.safetensors", metadata={"made \"by\"": "reference\n"})
    (DATA / "mixed.safetensors").chmod(0o644)


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    write_npy()
    write_safetensors()
