// A stand-in for NVIDIA's driver (libcuda.so.1, libnvidia-ml.so.1) with one GPU, on which nothing can
// run. It answers what TensorFlow asks before it opens its other libraries and lists the GPU.

#include <stdint.h>
#include <string.h>

enum { COMPUTE_CAPABILITY_MAJOR = 75, COMPUTE_CAPABILITY_MINOR = 76 };

static char context[256];

int cuInit(unsigned flags) { return 0; }

int cuDriverGetVersion(int *version) {
  *version = 12090;
  return 0;
}

int cuGetErrorName(int error, const char **name) {
  *name = "STAND_IN";
  return 0;
}

int cuGetErrorString(int error, const char **text) {
  *text = "the stand-in of a driver";
  return 0;
}

int cuDeviceGetCount(int *count) {
  *count = 1;
  return 0;
}

int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}

int cuDeviceGetName(char *name, int size, int device) {
  strncpy(name, "stand-in", size);
  return 0;
}

int cuDeviceGetPCIBusId(char *id, int size, int device) {
  strncpy(id, "0000:00:00.0", size);
  return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == COMPUTE_CAPABILITY_MAJOR ? 8 : attribute == COMPUTE_CAPABILITY_MINOR ? 0 : 32;
  return 0;
}

int cuDeviceTotalMem_v2(uint64_t *bytes, int device) {
  *bytes = UINT64_C(8) << 30;
  return 0;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active) {
  *flags = 0;
  *is_active = 1;
  return 0;
}

int cuDevicePrimaryCtxRetain(void **made, int device) {
  *made = context;
  return 0;
}

int cuCtxGetCurrent(void **current) {
  *current = context;
  return 0;
}

int nvmlInit_v2(void) { return 0; }

int nvmlShutdown(void) { return 0; }
