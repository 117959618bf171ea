/* A libnvidia-ml.so.1 that does what a script says, so that the real ctypes path runs without a GPU.
 *
 * The environment variable NVML_STUB_SCRIPT names a text file, read anew at every call. Lines:
 *     init error CODE                what nvmlInit returns
 *     devices N                      how many GPUs there are
 *     DEVICE METRIC VALUE [VALUE]    e.g. "0 utilization 57 31", "0 power 250000", "1 uuid MIG-7"
 *     DEVICE METRIC error CODE       e.g. "0 power error 3" (3: not supported, 15: GPU is lost)
 *     DEVICE METRIC sleep MS         the call takes that long, then goes on with later lines
 * The last matching line counts. A metric that no line names is not supported.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, MISMATCH = 25, FIELD = 80, MAX_DEVICES = 32 };

typedef struct { unsigned gpu, memory; } utilization_t;
typedef struct { unsigned long long total, free, used; } memory_v1_t;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2_t;

/* Looks a metric of a device up; fills up to two texts and returns an NVML status. */
static int look_up(const char *device, const char *metric, char first[FIELD], char second[FIELD]) {
    char line[256], who[FIELD], what[FIELD], a[FIELD], b[FIELD];
    const char *path = getenv("NVML_STUB_SCRIPT");
    FILE *script = path ? fopen(path, "r") : NULL;
    int status = NOT_SUPPORTED;
    if (!script) return status;
    while (fgets(line, sizeof line, script)) {
        b[0] = 0;
        if (sscanf(line, "%79s %79s %79s %79s", who, what, a, b) < 3) continue;
        if (strcmp(who, device) || strcmp(what, metric)) continue;
        if (!strcmp(a, "sleep")) { usleep(1000 * atoi(b)); continue; }
        if (!strcmp(a, "error")) { status = atoi(b); continue; }
        strcpy(first, a);
        strcpy(second, b);
        status = SUCCESS;
    }
    fclose(script);
    return status;
}

static int number(void *handle, const char *metric, unsigned long long *first, unsigned long long *second) {
    char device[32], a[FIELD] = "", b[FIELD] = "";
    snprintf(device, sizeof device, "%ld", (long)handle - 1);
    int status = look_up(device, metric, a, b);
    *first = strtoull(a, NULL, 10);
    if (second) *second = strtoull(b, NULL, 10);
    return status;
}

static void uuid_of(long index, char out[FIELD]) {
    char device[32], rest[FIELD];
    snprintf(device, sizeof device, "%ld", index);
    if (look_up(device, "uuid", out, rest) != SUCCESS) snprintf(out, FIELD, "GPU-%08ld-aaaa-bbbb", index);
}

static unsigned device_count(void) {
    char line[256];
    unsigned count = 0;
    FILE *script = fopen(getenv("NVML_STUB_SCRIPT"), "r");
    while (script && fgets(line, sizeof line, script)) sscanf(line, "devices %u", &count);
    if (script) fclose(script);
    return count;
}

int nvmlInitWithFlags(unsigned flags) {
    char code[FIELD], rest[FIELD];
    (void)flags;
    return look_up("init", "error", code, rest) == SUCCESS ? atoi(code) : SUCCESS;
}
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { return code == 999 ? "Unknown Error" : "an error of the stub"; }

int nvmlDeviceGetCount_v2(unsigned *count) { *count = device_count(); return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    char device[32], a[FIELD], b[FIELD];
    snprintf(device, sizeof device, "%u", index);
    int status = look_up(device, "handle", a, b);
    *handle = (void *)(long)(index + 1);
    return status == NOT_SUPPORTED ? SUCCESS : status;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    char candidate[FIELD];
    for (long index = 0; index < MAX_DEVICES; index++) {
        uuid_of(index, candidate);
        if (!strcmp(candidate, uuid)) { *handle = (void *)(index + 1); return SUCCESS; }
    }
    return NOT_FOUND;
}
int nvmlDeviceGetUUID(void *handle, char *out, unsigned length) {
    char uuid[FIELD];
    uuid_of((long)handle - 1, uuid);
    snprintf(out, length, "%s", uuid);
    return SUCCESS;
}
int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
    unsigned long long mode;
    int status = number(handle, "mig", &mode, NULL);
    *current = *pending = (unsigned)mode;
    return status;
}
int nvmlDeviceGetUtilizationRates(void *handle, utilization_t *out) {
    unsigned long long gpu, memory;
    int status = number(handle, "utilization", &gpu, &memory);
    out->gpu = (unsigned)gpu;
    out->memory = (unsigned)memory;
    return status;
}
int nvmlDeviceGetMemoryInfo(void *handle, memory_v1_t *out) {
    int status = number(handle, "memory_v1", &out->used, &out->total);
    out->free = out->total - out->used;
    return status;
}
int nvmlDeviceGetMemoryInfo_v2(void *handle, memory_v2_t *out) {
    if (out->version != (sizeof *out | 2u << 24)) return MISMATCH;
    return number(handle, "memory_v2", &out->used, &out->total);
}
static int one(void *handle, const char *metric, unsigned *out) {
    unsigned long long value;
    int status = number(handle, metric, &value, NULL);
    *out = (unsigned)value;
    return status;
}
int nvmlDeviceGetPowerUsage(void *handle, unsigned *out) { return one(handle, "power", out); }
int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *out) { return one(handle, "limit", out); }
int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *out) {
    return sensor ? INVALID : one(handle, "temperature", out);
}
