// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "loop/result.h"

namespace muster {

// Unpacks one gzip file that was made by us; at most `max` bytes come out of it. Pure.
Result<std::string> gunzip(std::string_view packed, size_t max);

// Packs a stream piece by piece. Pure; about 270 KiB of memory while it lives.
class GzipWriter {
 public:
  GzipWriter();
  ~GzipWriter();

  // What is packed so far; may be nothing.
  std::string add(std::string_view bytes);
  // The rest. The last call.
  std::string finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
