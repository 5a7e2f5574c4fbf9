// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace muster {

// One file of the page (web/), as the build packed it. All of it lies in the binary's read-only
// data, so that it costs no memory before somebody asks for it.
struct PageFile {
  std::string_view path;          // "/" for the page itself, "/app.js"
  std::string_view content_type;  // "text/html; charset=utf-8"
  std::string_view etag;          // with its quotes; changes with the content
  std::string_view gzip;          // the content, compressed
  size_t size = 0;                // of the content
};

std::span<const PageFile> page_files();

// Null if the page has no such file.
const PageFile* find_page_file(std::string_view path);

}  // namespace muster
