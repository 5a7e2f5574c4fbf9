// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/stop_signals.h"

#include <signal.h>
#include <string.h>

namespace muster {

int signal_number(const std::string& name) {
  if (name == "SIGRTMIN") return SIGRTMIN;
  if (name == "SIGRTMAX") return SIGRTMAX;
  for (int number = 1; number < 32; ++number) {
    const char* abbreviation = ::sigabbrev_np(number);
    if (abbreviation != nullptr && name == std::string("SIG") + abbreviation) return number;
  }
  return 0;
}

std::vector<int> signal_numbers(const std::vector<std::string>& names) {
  std::vector<int> numbers;
  for (const std::string& name : names) {
    if (int number = signal_number(name); number != 0) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace muster
