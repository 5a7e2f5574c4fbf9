// SPDX-License-Identifier: Apache-2.0
// Stands in for libze_loader.so.1: one driver with three devices.
#include <stdint.h>

int zeInit(uint32_t flags) {
  return flags == 1 ? 0 : 1;
}

int zeDriverGet(uint32_t* count, void** drivers) {
  static int driver;
  if (drivers != 0) drivers[0] = &driver;
  *count = 1;
  return 0;
}

int zeDeviceGet(void* driver, uint32_t* count, void** devices) {
  if (driver == 0 || devices != 0) return 1;
  *count = 3;
  return 0;
}
