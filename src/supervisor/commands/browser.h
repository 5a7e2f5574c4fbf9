// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "loop/result.h"

namespace muster {

// Opens an address in the user's browser: $BROWSER, else what the desktop has for it. The address
// has a token, and command lines can be read by everybody on the machine, so the browser gets the
// name of a file, readable by its owner alone, that leads there. Gone with this object.
class BrowserPage {
 public:
  static Result<BrowserPage> open(const std::string& url);

  BrowserPage(BrowserPage&& other) noexcept;
  BrowserPage& operator=(BrowserPage&&) = delete;
  ~BrowserPage();

 private:
  explicit BrowserPage(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// A page that leads to `url` at once.
std::string leading_page(const std::string& url);

}  // namespace muster
