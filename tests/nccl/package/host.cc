// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

extern "C" int sum_of_ranks();

int main() {
  std::printf("the ranks' sum is %d\n", sum_of_ranks());
  return 0;
}
