// SPDX-License-Identifier: Apache-2.0
#include <muster/comm/record.h>

#include <cstring>
#include <limits>

#include "nccl/report/own_page.h"

namespace muster::comm {
namespace {

using worker_page::ProgressBlock;

static_assert(kMaxValues == worker_page::kMaxValues);
static_assert(kMaxValueName + 1 == worker_page::kValueName);

// The place of this name; a new one if there is none and there is room, else nullptr. Only while
// the version is held.
worker_page::NamedValue* place_of(ProgressBlock& progress, std::string_view name) {
  char wanted[worker_page::kValueName];
  detail::write_text(wanted, sizeof(wanted), name);
  const uint32_t used = progress.values.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; i++) {
    if (std::memcmp(progress.named[i].name, wanted, sizeof(wanted)) == 0) return &progress.named[i];
  }
  if (used == worker_page::kMaxValues) return nullptr;
  detail::write_text(progress.named[used].name, sizeof(wanted), name);
  detail::put(progress.values, used + 1);
  return &progress.named[used];
}

}  // namespace

void report_progress(const Progress& report) {
  ProgressBlock& progress = detail::own_page().progress;
  const int64_t now = detail::monotonic_ns();
  if (!detail::begin_write(progress.version)) return;  // another report is on its way
  detail::put(progress.step, report.step);
  detail::put(progress.total, report.total.value_or(-1));
  detail::put(progress.loss, report.loss.value_or(std::numeric_limits<double>::quiet_NaN()));
  detail::put(progress.reported_ns, now);
  detail::put(progress.heartbeat_ns, now);
  detail::end_write(progress.version);
}

void report_values(std::initializer_list<std::pair<std::string_view, double>> values) {
  ProgressBlock& progress = detail::own_page().progress;
  const int64_t now = detail::monotonic_ns();
  if (!detail::begin_write(progress.version)) return;
  for (const auto& [name, value] : values) {
    if (auto* place = place_of(progress, name)) detail::put(place->value, value);
  }
  detail::put(progress.heartbeat_ns, now);
  detail::end_write(progress.version);
}

void heartbeat() {
  detail::put(detail::own_page().progress.heartbeat_ns, detail::monotonic_ns());
}

}  // namespace muster::comm
