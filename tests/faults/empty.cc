// SPDX-License-Identifier: Apache-2.0
int muster_elsewhere() {
  return 0;
}
