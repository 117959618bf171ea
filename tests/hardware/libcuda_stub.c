/* A CUDA driver to test with: the calls that labkit makes, answered from environment variables.
 *
 *   STUB_CUDA_INIT     what cuInit returns (default 0)
 *   STUB_CUDA_DEVICES  names of the GPUs, separated by ';'; their number is the number of GPUs
 *   STUB_CUDA_MEMORY   bytes of memory of each (default 80 GiB)
 *   STUB_CUDA_VERSION  what cuDriverGetVersion reports (default 13000)
 *   STUB_CUDA_LOST     ordinal of a GPU whose every query fails
 *   CUDA_VISIBLE_DEVICES is honoured in its simplest form, a list of ordinals, as the driver honours it.
 */
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NO_DEVICE = 100, INVALID_DEVICE = 101, UNKNOWN = 999, MAJOR = 75, MINOR = 76 };

static long number(const char *variable, long otherwise) {
    const char *text = getenv(variable);
    return text ? atol(text) : otherwise;
}

static int installed(void) {
    const char *names = getenv("STUB_CUDA_DEVICES");
    int count = names && *names;
    for (; names && *names; names++) count += *names == ';';
    return count;
}

/* Fills ordinals[] with the visible GPUs in their order; stops at the first that does not exist. */
static int visible(int *ordinals) {
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    int count = 0, all = installed();
    if (!list) {
        for (; count < all; count++) ordinals[count] = count;
        return count;
    }
    while (*list) {
        char *end;
        long ordinal = strtol(list, &end, 10);
        if (end == list || ordinal < 0 || ordinal >= all) break;
        ordinals[count++] = (int)ordinal;
        list = *end ? end + 1 : end;
    }
    return count;
}

static int lost(int device) { return device == number("STUB_CUDA_LOST", -1); }

int cuInit(unsigned int flags) {
    int ordinals[64], status = (int)number("STUB_CUDA_INIT", SUCCESS);
    (void)flags;
    return status ? status : visible(ordinals) ? SUCCESS : NO_DEVICE;
}

int cuDriverGetVersion(int *version) {
    *version = (int)number("STUB_CUDA_VERSION", 13000);
    return SUCCESS;
}

int cuDeviceGetCount(int *count) {
    int ordinals[64];
    *count = visible(ordinals);
    return SUCCESS;
}

int cuDeviceGet(int *device, int index) {
    int ordinals[64];
    if (index < 0 || index >= visible(ordinals)) return INVALID_DEVICE;
    *device = ordinals[index];
    return SUCCESS;
}

int cuDeviceGetName(char *name, int length, int device) {
    const char *from = getenv("STUB_CUDA_DEVICES");
    if (lost(device)) return UNKNOWN;
    for (; device > 0; device--) from = strchr(from, ';') + 1;
    size_t size = strcspn(from, ";");
    if (size >= (size_t)length) size = (size_t)length - 1;
    memcpy(name, from, size);
    name[size] = '\0';
    return SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    if (lost(device)) return UNKNOWN;
    *value = attribute == MAJOR ? 9 : 0;
    return SUCCESS;
}

int cuDeviceGetUuid_v2(char *uuid, int device) {
    if (lost(device)) return UNKNOWN;
    for (int byte = 0; byte < 16; byte++) uuid[byte] = (char)(byte * 16 + device);
    return SUCCESS;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    if (lost(device)) return UNKNOWN;
    *bytes = (size_t)number("STUB_CUDA_MEMORY", 80L << 30);
    return SUCCESS;
}

int cuDeviceCanAccessPeer(int *able, int device, int peer) {
    const char *text = getenv("STUB_CUDA_PEERS");
    *able = device != peer && text != NULL && text[0] == '1';
    return 0;
}
