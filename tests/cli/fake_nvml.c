// SPDX-License-Identifier: Apache-2.0
// Stands in for libnvidia-ml.so.1: two GPUs, as NVML's documentation lays them out.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pci_info {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

int nvmlInit_v2(void) {
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static int devices[2];
  *device = &devices[index];
  devices[index] = (int)index;
  return 0;
}

int nvmlDeviceGetPciInfo_v3(void* device, struct pci_info* info) {
  memset(info, 0, sizeof *info);
  info->bus = 0x1a + (unsigned)*(int*)device;
  snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", info->bus);
  return 0;
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) {
  snprintf(uuid, size, "GPU-%d", *(int*)device);
  return 0;
}

struct utilization {
  unsigned gpu, memory;
};

int nvmlDeviceGetUtilizationRates(void* device, struct utilization* rates) {
  rates->gpu = *(int*)device == 0 ? 75 : 20;
  rates->memory = 5;
  return 0;
}

struct memory {
  unsigned long long total, free, used;
};

int nvmlDeviceGetMemoryInfo(void* device, struct memory* info) {
  info->total = 80ULL << 30;
  info->used = (unsigned long long)(*(int*)device + 1) << 30;
  info->free = info->total - info->used;
  return 0;
}

struct process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

/* The process that the test names computes on the second GPU. */
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, struct process* list) {
  const char* pid = getenv("MUSTER_FAKE_GPU_PID");
  *count = 0;
  if (pid == NULL || *(int*)device != 1) return 0;
  list[0].pid = (unsigned)atoi(pid);
  list[0].used = 12345;
  *count = 1;
  return 0;
}

// With MUSTER_FAKE_GPU_TROUBLE the GPUs have had errors.
int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* errors) {
  (void)device;
  *errors = type == 1 && counter == 0 && getenv("MUSTER_FAKE_GPU_TROUBLE") ? 3 : 0;
  return 0;
}

int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  (void)device;
  *corrected = *uncorrected = *failed = 0;
  *pending = getenv("MUSTER_FAKE_GPU_TROUBLE") ? 1 : 0;
  return 0;
}
