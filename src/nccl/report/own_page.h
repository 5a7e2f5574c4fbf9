// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "nccl/report/worker_page.h"

namespace muster::comm::detail {

// The page this process writes: the launcher's (MUSTER_WORKER_PAGE) if this is the process that may
// write it, otherwise private memory of the same layout, so that nobody has to ask. Opened at the
// first call, never unmapped; any thread. A forked child gets an empty private one in its place, at
// the same address.
worker_page::Page& own_page();

// Whether the launcher can read it.
bool own_page_is_shared();

// This process' place in the world, where it is not what RANK and WORLD_SIZE said.
void set_world(int rank, int size);

// CLOCK_MONOTONIC, the page's clock.
int64_t monotonic_ns();

// Text of the page: cut at `capacity` - 1 bytes, between two characters of UTF-8, and filled up
// with zeros. Atomic bytes, because somebody may be reading.
void write_text(char* to, size_t capacity, std::string_view text);

// What opening does, apart from the environment: nullptr if the page cannot or may not be written.
worker_page::Page* take_page(const char* path);

// The writer's side of a seqlock. Its fields are then stored with release, so that who sees a new
// field also sees the odd version. False: somebody held it all the time.
bool begin_write(worker_page::Shared<uint64_t>& version);
void end_write(worker_page::Shared<uint64_t>& version);

template <typename T>
void put(worker_page::Shared<T>& field, T value) {
  field.store(value, std::memory_order_release);
}

}  // namespace muster::comm::detail
