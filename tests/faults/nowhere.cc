// SPDX-License-Identifier: Apache-2.0
int muster_nowhere() {
  return 0;
}
