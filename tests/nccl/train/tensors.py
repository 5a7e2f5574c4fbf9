# SPDX-License-Identifier: Apache-2.0
"""Reads the files that muster::train writes, as anybody's Python would."""

import array
import json
import zlib

KINDS = {"F32": "f", "F64": "d", "I64": "q"}


def read_tensors(path):
    """{name: list of numbers}, {key: text}; checks the checksum."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        data = file.read()
    metadata = header.pop("__metadata__")
    assert f"{zlib.crc32(data):08x}" == metadata.pop("muster.crc32")
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = array.array(KINDS[entry["dtype"]], data[begin:end]).tolist()
    return tensors, metadata
