// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/browse/browse_gate.h"

namespace muster {

// A .tar.gz that is being made. Owned by whoever sends it; dropping it ends it.
class LogArchive : public BrowseTask {
 public:
  // From the loop, after each piece of work: what is packed, maybe nothing. It may drop the
  // archive, give it more, or pause it: then nothing is packed until it goes on.
  using OnPacked = std::function<void(std::string packed)>;
  static std::unique_ptr<LogArchive> start(BrowseGate& gate, OnPacked on_packed);

  // A log of this machine as it is by then; one that is not there is left out.
  virtual void add_log(const std::string& name, const std::string& path) = 0;
  // A file of which the bytes come one after another. If fewer come the rest is zeros.
  virtual void begin_file(const std::string& name, int64_t size, int64_t time_s) = 0;
  virtual void add_bytes(std::string bytes) = 0;
  virtual void end_file() = 0;
  // Nothing more is added.
  virtual void finish() = 0;

  virtual void set_paused(bool paused) = 0;

  // All that was given is packed, and was told.
  virtual bool idle() const = 0;
  // Bytes given that are not packed.
  virtual size_t backlog() const = 0;
  // All is packed, the archive's end too, and was told.
  virtual bool finished() const = 0;
  // What could not be packed as it should; while idle.
  virtual std::vector<std::string> troubles() const = 0;
};

}  // namespace muster
