# SPDX-License-Identifier: Apache-2.0
"""Debian 12's own torchrun (1.13.1), which needs its flag parser replaced to start at all there:
since Python 3.11, iterating over a flag enumeration leaves out 0."""

from torch.distributed.elastic.multiprocessing import api
from torch.distributed.run import main


def from_str(text):
    if ":" not in text:
        return api.Std(int(text))
    pairs = (pair.split(":") for pair in text.split(","))
    return {int(rank): api.Std(int(value)) for rank, value in pairs}


api.Std.from_str = from_str
main()
