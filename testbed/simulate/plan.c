#define _GNU_SOURCE
#include "plan.h"

#include "fail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_TASKS (1 << 24)
#define MOST_LINES (1 << 28)
#define MOST_PIECES (1 << 30)
#define MOST_KEPT_BYTES ((size_t)256 << 20)

static __attribute__((noreturn)) void refuse(const struct plan *plan, const char *what)
{
    fail(EXIT_USAGE, "%s is not a plan of this version of ensio (%s): make it again with ensio simulate", plan->path,
         what);
}

/* The remaining text. */
struct text {
    char *next;
    char *end;
    const struct plan *plan;
};

static char *next_line(struct text *text)
{
    char *line = text->next;
    char *newline = line < text->end ? memchr(line, '\n', (size_t)(text->end - line)) : NULL;
    if (!newline)
        refuse(text->plan, "its text ends too early");
    *newline = '\0';
    text->next = newline + 1;
    return line;
}

static int64_t next_number(struct text *text, const char *key, int64_t least, int64_t most)
{
    char *line = next_line(text);
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0 || line[length] != ' ')
        refuse(text->plan, key);
    char *end;
    errno = 0;
    long long number = strtoll(line + length + 1, &end, 10);
    if (errno || *end || end == line + length + 1 || number < least || number > most)
        refuse(text->plan, key);
    return number;
}

static char **next_lines(struct text *text, const char *key, int32_t *count)
{
    *count = (int32_t)next_number(text, key, 0, MOST_LINES);
    char **lines = zeroed((size_t)*count, sizeof *lines, key);
    for (int32_t i = 0; i < *count; i++)
        lines[i] = next_line(text);
    return lines;
}

static void read_text(struct plan *plan, struct text *text)
{
    char *seed = next_line(text);
    if (sscanf(seed, "seed %" SCNu64, &plan->seed) != 1)
        refuse(plan, "seed");
    plan->tasks = (int32_t)next_number(text, "tasks", 1, MOST_TASKS);
    plan->tasks_per_node = (int32_t)next_number(text, "tasks_per_node", 1, MOST_TASKS);
    plan->nodes = (plan->tasks + plan->tasks_per_node - 1) / plan->tasks_per_node;
    plan->calls = next_lines(text, "calls", &plan->call_count);
    plan->files = next_lines(text, "files", &plan->file_count);
    plan->hints = next_lines(text, "hints", &plan->hint_count);
    plan->step_count = (int32_t)next_number(text, "steps", 0, MOST_LINES);
    plan->steps = zeroed((size_t)plan->step_count, sizeof *plan->steps, "steps");
    for (int32_t i = 0; i < plan->step_count; i++)
        if (sscanf(next_line(text), "%63s %ld", plan->steps[i].phase, &plan->steps[i].repetition) != 2)
            refuse(plan, "steps");
    plan->operation_count = next_number(text, "operations", 0, INT64_MAX / (int64_t)sizeof(struct plan_operation));
}

void plan_read(const char *path, struct plan *plan)
{
    *plan = (struct plan){.path = path};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        fail(EXIT_USAGE, "%s cannot be read: %s", path, strerror(errno));
    plan->mapped_bytes = (size_t)status.st_size;
    char head[64] = "";
    ssize_t got = pread(fd, head, sizeof head - 1, 0);
    size_t text_bytes;
    int head_bytes = 0;
    if (got <= 0 || sscanf(head, "ensio-plan 2 %zu%n", &text_bytes, &head_bytes) != 1 || head[head_bytes] != '\n')
        refuse(plan, "its first line");
    size_t numbers = (size_t)head_bytes + 1 + text_bytes;
    if (text_bytes > plan->mapped_bytes || numbers > plan->mapped_bytes)
        refuse(plan, "its length");
    /* A plan that is kept in memory is populated at once, because page faults would be expensive. */
    const int all = plan_is_kept(plan) ? MAP_POPULATE : 0;
    plan->mapped = mmap(NULL, plan->mapped_bytes, PROT_READ, MAP_SHARED | all, fd, 0);
    if (plan->mapped == MAP_FAILED)
        fail(EXIT_FAILURE, "%s cannot be mapped: %s", path, strerror(errno));
    close(fd);
    char *copy = zeroed(text_bytes + 1, 1, "the plan's text");
    memcpy(copy, (char *)plan->mapped + head_bytes + 1, text_bytes);
    struct text text = {copy, copy + text_bytes, plan};
    read_text(plan, &text);
    size_t expected =
        numbers + (size_t)plan->tasks * sizeof(int64_t) + (size_t)plan->operation_count * sizeof(struct plan_operation);
    if (expected != plan->mapped_bytes)
        refuse(plan, "its length");
    plan->counts = (const int64_t *)((char *)plan->mapped + numbers);
    plan->operations = (const struct plan_operation *)(plan->counts + plan->tasks);
}

int64_t plan_count(const struct plan *plan, int32_t task, int64_t left)
{
    int64_t count;
    memcpy(&count, (const char *)plan->counts + (size_t)task * sizeof count, sizeof count);
    if (count < 0 || count > left)
        refuse(plan, "its numbers of operations");
    return count;
}

/* One row. A further box has the call PLAN_FURTHER_BOX. */
static struct plan_operation row_of(const struct plan *plan, int64_t number, int is_further)
{
    struct plan_operation operation;
    const char *place = (const char *)plan->operations + (size_t)number * sizeof operation;
    memcpy(&operation, place, sizeof operation);
    __builtin_prefetch(place + sizeof operation); /* the task's next operation: other tasks run before it is needed */
    __builtin_prefetch(place + 2 * sizeof operation - 1);
    if (operation.step < 0 || operation.step >= plan->step_count ||
        (is_further ? operation.call != PLAN_FURTHER_BOX : operation.call < 0) || operation.call >= plan->call_count ||
        operation.file < -1 || operation.file >= plan->file_count || operation.pieces < 0 || operation.planes < 0 ||
        operation.pieces > MOST_PIECES || operation.planes > MOST_PIECES)
        refuse(plan, "its operations");
    operation.pieces += !operation.pieces;
    operation.planes += !operation.planes;
    return operation;
}

struct plan_operation plan_operation(const struct plan *plan, int64_t number)
{
    return row_of(plan, number, 0);
}

int64_t plan_boxes(const struct plan *plan, int64_t number, int64_t end)
{
    int64_t next = number + 1;
    for (; next < end; next++) {
        int64_t call;
        const char *row = (const char *)plan->operations + (size_t)next * sizeof(struct plan_operation);
        memcpy(&call, row + offsetof(struct plan_operation, call), sizeof call);
        if (call != PLAN_FURTHER_BOX)
            break;
    }
    return next - number;
}

struct plan_operation plan_box(const struct plan *plan, int64_t number, int64_t box)
{
    return row_of(plan, number + box, box > 0);
}

const char *plan_hint(const struct plan *plan, const char *key)
{
    size_t length = strlen(key);
    for (int32_t i = 0; i < plan->hint_count; i++)
        if (strncmp(plan->hints[i], key, length) == 0 && plan->hints[i][length] == ' ')
            return plan->hints[i] + length + 1;
    return NULL;
}

int64_t plan_hint_number(const struct plan *plan, const char *key, int64_t otherwise)
{
    const char *value = plan_hint(plan, key);
    if (!value)
        return otherwise;
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (errno || *end || end == value || number < 1)
        fail(EXIT_USAGE, "the hint %s is %s: it must be a whole number of at least 1", key, value);
    return number;
}

int plan_is_kept(const struct plan *plan)
{
    return plan->mapped_bytes <= MOST_KEPT_BYTES;
}

void plan_forget_pages(const struct plan *plan)
{
    if (!plan_is_kept(plan))
        madvise(plan->mapped, plan->mapped_bytes, MADV_DONTNEED);
}
