// SPDX-License-Identifier: Apache-2.0
// Needs a library that is taken away after it was linked.
int muster_nowhere();

int main() {
  return muster_nowhere();
}
