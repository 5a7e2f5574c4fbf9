// SPDX-License-Identifier: Apache-2.0
// exit_with CODE: ends with it.
#include <cstdlib>

int main(int argc, char** argv) {
  return argc > 1 ? std::atoi(argv[1]) : 0;
}
