// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/line_filter.h"

#include <algorithm>
#include <cstring>

namespace muster {

FilterFile::FilterFile(ChunkPool& chunks, std::shared_ptr<PoolGate> gate,
                       std::shared_ptr<LogFile> file, std::vector<std::string> needles, Hooks hooks)
    : chunks_(chunks),
      needles_(std::move(needles)),
      hooks_(std::move(hooks)),
      queue_(std::move(gate), std::move(file),
             [this](std::vector<Chunk> written_chunks, const LogFile::Written& written) {
               queued_ -= static_cast<int>(written_chunks.size());
               for (Chunk& chunk : written_chunks)
                 chunks_.give_back(std::move(chunk));
               if (written.error != 0) hooks_.on_file_error(written);
               hooks_.on_room();
             }),
      pending_(chunks.take()) {}

bool FilterFile::matches(std::string_view line) const {
  return std::any_of(needles_.begin(), needles_.end(), [line](const std::string& needle) {
    return line.find(needle) != std::string_view::npos;
  });
}

void FilterFile::append(std::string_view prefix, std::string_view line) {
  put(prefix);
  put(line);
}

void FilterFile::put(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t piece = std::min(bytes.size(), Chunk::kCapacity - pending_.size);
    std::memcpy(pending_.data.get() + pending_.size, bytes.data(), piece);
    pending_.size += piece;
    bytes.remove_prefix(piece);
    if (pending_.size == Chunk::kCapacity) flush();
  }
}

void FilterFile::flush() {
  if (pending_.size == 0) return;
  ++queued_;
  Chunk full = std::move(pending_);
  pending_ = chunks_.take();
  queue_.append(std::move(full));
}

void LineFilter::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      partial_ += bytes;
      if (partial_.size() > kMaxLine) this->end();
      break;
    }
    if (partial_.empty()) {
      line(bytes.substr(0, end + 1));
    } else {
      partial_ += bytes.substr(0, end + 1);
      line(partial_);
      partial_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
  file_.flush();
}

void LineFilter::end() {
  if (partial_.empty()) return;
  partial_ += '\n';
  line(partial_);
  partial_.clear();
  file_.flush();
}

void LineFilter::line(std::string_view text) {
  if (!file_.matches(text.substr(0, text.size() - 1))) return;
  file_.append(prefix_.text(std::chrono::system_clock::now()), text);
}

}  // namespace muster
