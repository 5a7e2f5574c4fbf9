// SPDX-License-Identifier: Apache-2.0
#pragma once

// The training pieces on top of muster::comm: which samples are mine, gradients that are averaged
// while the backward pass goes on, checkpoints that survive a kill.

#include <muster/train/checkpoint.h>
#include <muster/train/ddp.h>
#include <muster/train/sampler.h>
#include <muster/train/sharded_checkpoint.h>
