# SPDX-License-Identifier: Apache-2.0
"""A worker whose decorated main fails on rank 1."""

import os
import time

from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    if os.environ["RANK"] != "1":
        time.sleep(600)
    raise ValueError("deliberate, on rank 1")


main()
