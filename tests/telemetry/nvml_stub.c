/* A libnvidia-ml.so.1 that does what a script says, so that the real ctypes path runs without a GPU.
 *
 * The environment variable NVML_STUB_SCRIPT names a text file, read anew whenever it has changed. Lines:
 *     init error CODE                what nvmlInit returns
 *     devices N                      how many GPUs there are
 *     DEVICE METRIC VALUE [VALUE]    e.g. "0 utilization 57 31", "0 power 250000", "1 uuid MIG-7"
 *     DEVICE METRIC error CODE       e.g. "0 power error 3" (3: not supported, 15: GPU is lost)
 *     DEVICE METRIC sleep MS         the call takes that long, then goes on with later lines
 *     DEVICE process PID BYTES       one process of the list; several lines are several processes
 * DEVICE may be "*". The last matching line counts. A metric that no line names is not supported.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT = 7, MISMATCH = 25 };
enum { FIELD = 80, MAX_DEVICES = 32, MAX_LINES = 2000 };

typedef struct { unsigned gpu, memory; } utilization_t;
typedef struct { unsigned long long total, free, used; } memory_v1_t;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2_t;
typedef struct { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; } process_t;
typedef struct {
    unsigned field, scope; long long timestamp, latency; unsigned type, status; unsigned long long value;
} field_t;
typedef struct { char who[16], what[32], a[FIELD], b[16]; } line_t;

static line_t lines[MAX_LINES];
static int line_count;

/* Threads of the program under test read at the same time; the script changes between their rounds only. */
static void load(void) {
    static struct timespec seen;
    static long long size = -1;
    struct stat now;
    const char *path = getenv("NVML_STUB_SCRIPT");
    char text[256];
    if (size >= 0 && getenv("NVML_STUB_FROZEN")) return; /* for those who time the program and not the stub */
    if (!path || stat(path, &now)) return;
    if (size == now.st_size && seen.tv_sec == now.st_mtim.tv_sec && seen.tv_nsec == now.st_mtim.tv_nsec) return;
    FILE *script = fopen(path, "r");
    int count = 0;
    while (script && count < MAX_LINES && fgets(text, sizeof text, script)) {
        line_t *line = &lines[count];
        line->b[0] = 0;
        if (sscanf(text, "%15s %31s %79s %15s", line->who, line->what, line->a, line->b) >= 2) count++;
    }
    if (script) fclose(script);
    line_count = count;
    size = now.st_size;
    seen = now.st_mtim;
}

/* Looks a metric of a device up; fills up to two texts and returns an NVML status. */
static int look_up(const char *device, const char *metric, char first[FIELD], char second[FIELD]) {
    int status = NOT_SUPPORTED;
    load();
    for (int i = 0; i < line_count; i++) {
        line_t *line = &lines[i];
        if (strcmp(line->what, metric) || (strcmp(line->who, device) && strcmp(line->who, "*"))) continue;
        if (!strcmp(line->a, "sleep")) { usleep(1000 * atoi(line->b)); continue; }
        if (!strcmp(line->a, "error")) { status = atoi(line->b); continue; }
        strcpy(first, line->a);
        strcpy(second, line->b);
        status = SUCCESS;
    }
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
    unsigned count = 0;
    load();
    for (int i = 0; i < line_count; i++) if (!strcmp(lines[i].who, "devices")) count = atoi(lines[i].what);
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
int nvmlDeviceGetEncoderUtilization(void *handle, unsigned *out, unsigned *period) {
    *period = 167000;
    return one(handle, "encoder", out);
}
int nvmlDeviceGetDecoderUtilization(void *handle, unsigned *out, unsigned *period) {
    *period = 167000;
    return one(handle, "decoder", out);
}
int nvmlDeviceGetClockInfo(void *handle, int clock, unsigned *out) {
    return one(handle, clock == 1 ? "sm_clock" : clock == 2 ? "memory_clock" : "clock", out);
}
int nvmlDeviceGetTemperatureThreshold(void *handle, int which, unsigned *out) {
    return one(handle, which == 1 ? "slowdown" : "shutdown", out);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *out) {
    return number(handle, "reasons", out, NULL);
}
int nvmlDeviceGetPcieThroughput(void *handle, int counter, unsigned *out) {
    return one(handle, counter == 0 ? "pcie_tx" : "pcie_rx", out);
}
/* Fields by their number: "0 field138 1000". A link's own counter is that of all links; types are unsigned long long. */
int nvmlDeviceGetFieldValues(void *handle, int count, field_t *fields) {
    char metric[32];
    for (int i = 0; i < count; i++) {
        snprintf(metric, sizeof metric, "field%u", fields[i].field);
        fields[i].status = number(handle, metric, &fields[i].value, NULL);
        fields[i].type = 3;
    }
    return SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, process_t *out) {
    char device[32], a[FIELD], b[FIELD];
    unsigned found = 0, room = *count;
    snprintf(device, sizeof device, "%ld", (long)handle - 1);
    int status = look_up(device, "process", a, b);
    if (status != SUCCESS && status != NOT_SUPPORTED) return status;
    for (int i = 0; i < line_count; i++) {
        if (strcmp(lines[i].who, device) || strcmp(lines[i].what, "process")) continue;
        if (found < room && out) {
            out[found].pid = (unsigned)strtoul(lines[i].a, NULL, 10);
            out[found].memory = strtoull(lines[i].b, NULL, 10);
        }
        found++;
    }
    *count = found;
    return found > room || (found && !out) ? INSUFFICIENT : SUCCESS;
}
int nvmlDeviceGetTotalEccErrors(void *handle, int kind, int counter, unsigned long long *out) {
    (void)counter;
    return number(handle, kind == 1 ? "field4" : "field3", out, NULL);
}
int nvmlDeviceGetNvLinkState(void *handle, unsigned link, unsigned *active) {
    (void)handle;
    *active = link < 4;
    return link < 18 ? SUCCESS : INVALID;
}
int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *out) {
    return sensor ? INVALID : one(handle, "temperature", out);
}
