/* Tables of the calls of a chunk, each in one loop. evidence.py and file_uses.py document the functions. */
#include "_compiled.h"
#include "summaries/arrays.h"
#include "summaries/keyed_rows.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { IO = 1, READ = 2, WRITE = 4 };
enum { QUARTERS = 4, RAGGED = 3, BINS_PER_OCTAVE = 4, BINS = 64 * BINS_PER_OCTAVE, STRIPE_FACTS = 4 };
enum { NO_MEMORY = -2 };
/* Numbers of the keys of the tables. */
enum {
    JUMPS = 3,
    KEYS_OF_CALLS = 5,
    KEYS_OF_SPREADS = 2,
    KEYS_OF_CALLERS = 2,
    KEYS_OF_STAYS = 2,
    KEYS_OF_USES = 2,
    KEYS_OF_TARGETS = 4
};
static const double LOG_2 = 0.693147180559945309417;

/* What several tables sum: number of calls, their time, and the logarithms of their durations. */
typedef struct {
    int64_t n, time_ns, bytes;
    double log_ns;
} call_sums;

typedef struct {
    int64_t phase, rank, call, size, depth; /* the key */
    int64_t repeats, start_ns, end_ns;
    int64_t spread, caller, stay; /* rows of the other tables */
    call_sums quarter[QUARTERS], jumps[JUMPS];
    call_sums all;
} call_row;

typedef struct {
    int64_t call, size;
    int64_t n[BINS + RAGGED]; /* by duration; by ends inside a stripe */
} spread_row;

typedef struct {
    int64_t rank, call;
    int64_t file; /* of the call before; -1: there is none */
} caller_row;

typedef struct {
    int64_t phase, rank;
    int64_t low_ns, high_ns;
} stay_row;

typedef struct {
    int64_t file, rank;
    int64_t bytes, last_low, last_end; /* the latter two of reads; -1: there is none */
} use_row;

typedef struct {
    int64_t call, size, target, rank;
    int64_t least_ns;
    call_sums all;
} target_row;

typedef struct {
    const uint32_t *rank, *file;
    const uint16_t *call;
    const uint8_t *depth, *kinds;
    const int64_t *offset, *moved, *start, *duration, *phase, *own, *order, *stripes;
    const uint64_t *requested;
    const double *octaves; /* binary logarithms of the durations, or of 1 ns */
    Py_ssize_t events, known_calls, files;
    int has_quarters;
    keyed_rows calls, spreads, callers, stays, uses, targets;
} evidence_job;

static inline int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline void add_sums(call_sums *sums, int64_t time_ns, int64_t bytes, double log_ns)
{
    sums->n++;
    sums->time_ns += time_ns;
    sums->bytes += bytes;
    sums->log_ns += log_ns;
}

/* The number of binary digits. */
static inline int64_t digits_of(uint64_t number)
{
    if (number >> 53) { /* as NumPy, which rounds such numbers first */
        int digits;
        frexp((double)number, &digits);
        return digits;
    }
    return number ? 64 - __builtin_clzll(number) : 0;
}

/* The time that each task spends in each phase. */
static Py_ssize_t find_stays(evidence_job *job)
{
    for (Py_ssize_t i = 0; i < job->events; i++) {
        if (!(job->kinds[job->call[i]] & IO))
            continue;
        int is_new;
        const int64_t found =
            find_keyed(&job->stays, (const int64_t[]){job->phase[i], job->rank[i]}, KEYS_OF_STAYS, &is_new);
        if (found < 0)
            return NO_MEMORY;
        stay_row *const stay = row_of(&job->stays, found);
        stay->low_ns = is_new ? job->start[i] : least_of(stay->low_ns, job->start[i]);
        stay->high_ns = is_new ? job->start[i] : most_of(stay->high_ns, job->start[i]);
    }
    return -1;
}

static call_row *find_call(evidence_job *job, Py_ssize_t i)
{
    const int64_t key[] = {job->phase[i], job->rank[i], job->call[i], digits_of(job->requested[i]), job->depth[i] > 0};
    int is_new;
    const int64_t found = find_keyed(&job->calls, key, KEYS_OF_CALLS, &is_new);
    if (found < 0)
        return NULL;
    if (is_new) {
        const int64_t caller =
            find_keyed(&job->callers, (const int64_t[]){job->rank[i], job->call[i]}, KEYS_OF_CALLERS, &is_new);
        if (caller < 0)
            return NULL;
        if (is_new)
            ((caller_row *)row_of(&job->callers, caller))->file = -1;
        const int64_t spread =
            find_keyed(&job->spreads, (const int64_t[]){job->call[i], key[3]}, KEYS_OF_SPREADS, &is_new);
        if (spread < 0)
            return NULL;
        const int64_t stay =
            job->has_quarters ? find_keyed(&job->stays, key, KEYS_OF_STAYS, &is_new) : 0; /* phase and rank */
        if (stay < 0)
            return NULL;
        call_row *const row = row_of(&job->calls, found);
        row->start_ns = INT64_MAX, row->end_ns = INT64_MIN;
        row->caller = caller, row->spread = spread, row->stay = stay;
    }
    return row_of(&job->calls, found);
}

/* A read begins where the one before ended, or jumps (1), perhaps to before it (2); the first of a file does not. */
static void add_read(const evidence_job *job, Py_ssize_t i, call_row *row, use_row *use, int64_t time_ns, double log_ns)
{
    const int64_t low = job->offset[i], high = low + job->moved[i];
    const int jumps = use->last_end < 0 || low == use->last_end ? 0 : high <= use->last_low ? 2 : 1;
    add_sums(&row->jumps[jumps], time_ns, job->moved[i], log_ns);
    use->last_low = low, use->last_end = high;
}

static use_row *find_use(evidence_job *job, Py_ssize_t i)
{
    int is_new;
    const int64_t found = find_keyed(&job->uses, (const int64_t[]){job->file[i], job->rank[i]}, KEYS_OF_USES, &is_new);
    if (found < 0)
        return NULL;
    use_row *const use = row_of(&job->uses, found);
    if (is_new)
        use->last_end = -1;
    return use;
}

/* A transfer with a known offset. */
static int add_placed(evidence_job *job, Py_ssize_t i, call_row *row, use_row *use, int64_t time_ns, double log_ns)
{
    use->bytes += job->moved[i];
    const int64_t *const stripe = job->stripes + STRIPE_FACTS * least_of(job->file[i], job->files - 1);
    const int64_t width = stripe[0], count = stripe[1], first = stripe[2], listed = stripe[3];
    if (width <= 0)
        return 0;
    const int64_t low = job->offset[i], high = low + job->moved[i], number = low / width;
    ((spread_row *)row_of(&job->spreads, row->spread))->n[BINS + (low % width != 0) + (high % width != 0)]++;
    if (listed <= 0 || !(count == 1 || number == (high - 1) / width))
        return 0;
    int is_new;
    const int64_t target = (first + number % most_of(count, 1)) % listed;
    const int64_t place =
        find_keyed(&job->targets, (const int64_t[]){row->call, row->size, target, row->rank}, KEYS_OF_TARGETS, &is_new);
    if (place < 0)
        return -1;
    target_row *const one = row_of(&job->targets, place);
    one->least_ns = is_new ? time_ns : least_of(one->least_ns, time_ns);
    add_sums(&one->all, time_ns, job->moved[i], log_ns);
    return 0;
}

static inline int is_placed(const evidence_job *job, Py_ssize_t i)
{
    return (job->kinds[job->call[i]] & (READ | WRITE)) && job->offset[i] >= 0 && job->moved[i] > 0;
}

static int add_call(evidence_job *job, Py_ssize_t i)
{
    call_row *const row = find_call(job, i);
    if (!row)
        return -1;
    const int64_t duration = job->duration[i], own = job->own ? job->own[i] : duration;
    const int64_t moved = most_of(job->moved[i], 0), file = job->file[i];
    const double octaves = job->octaves[i], log_ns = octaves * LOG_2;
    add_sums(&row->all, own, moved, log_ns);
    row->start_ns = least_of(row->start_ns, job->start[i]);
    row->end_ns = most_of(row->end_ns, job->start[i] + duration);
    caller_row *const caller = row_of(&job->callers, row->caller);
    row->repeats += caller->file == file;
    caller->file = file;
    ((spread_row *)row_of(&job->spreads, row->spread))->n[(int)(octaves * BINS_PER_OCTAVE)]++;
    if (job->has_quarters) {
        const stay_row *const stay = row_of(&job->stays, row->stay);
        const double span = (double)(stay->high_ns - stay->low_ns + 1);
        const int quarter = (int)((double)(job->start[i] - stay->low_ns) / span * QUARTERS);
        /* Of spans beyond 2**53 ns, the last start may be rounded to the end. */
        add_sums(&row->quarter[quarter < QUARTERS ? quarter : QUARTERS - 1], own, moved, log_ns);
    }
    if (!is_placed(job, i))
        return 0;
    use_row *const use = find_use(job, i);
    if (!use || add_placed(job, i, row, use, own, log_ns) != 0)
        return -1;
    if (!job->order && job->kinds[job->call[i]] & READ)
        add_read(job, i, row, use, own, log_ns);
    return 0;
}

/* Return the first event of an unknown call, -1, or NO_MEMORY. */
static Py_ssize_t sum_evidence_events(evidence_job *job)
{
    const int octaves = BINS / BINS_PER_OCTAVE;
    for (Py_ssize_t i = 0; i < job->events; i++)
        if (job->call[i] >= job->known_calls || !(job->octaves[i] >= 0 && job->octaves[i] < octaves))
            return i;
    if (job->has_quarters && find_stays(job) == NO_MEMORY)
        return NO_MEMORY;
    for (Py_ssize_t i = 0; i < job->events; i++)
        if ((job->kinds[job->call[i]] & IO) && add_call(job, i) != 0)
            return NO_MEMORY;
    for (Py_ssize_t k = 0; job->order && k < job->events; k++) {
        const int64_t i = job->order[k];
        if (i < 0 || i >= job->events)
            return k;
        if (!is_placed(job, i) || (~job->kinds[job->call[i]] & (IO | READ)))
            continue;
        call_row *const row = find_call(job, i);
        const int64_t own = job->own ? job->own[i] : job->duration[i];
        use_row *const use = find_use(job, i);
        if (!row || !use)
            return NO_MEMORY;
        add_read(job, i, row, use, own, job->octaves[i] * LOG_2);
    }
    return -1;
}

static PyObject *calls_table(const keyed_rows *calls)
{
    enum { NUMBERS = 11 };
    columns64 made;
    if (make_columns64(&made, NUMBERS + 1, calls->rows) != 0)
        return NULL;
    for (uint32_t i = 0; i < calls->rows; i++) {
        const call_row *const row = row_of(calls, i);
        const int64_t numbers[NUMBERS] = {row->phase,   row->rank,     row->call,        row->size,
                                          row->depth,   row->all.n,    row->all.time_ns, row->all.bytes,
                                          row->repeats, row->start_ns, row->end_ns};
        put_row64(&made, numbers, NUMBERS, &row->all.log_ns);
    }
    return made.bytes;
}

/* The parts of the rows of calls: `parts` sums from `first` on in each row, those with calls. */
static PyObject *parts_table(const keyed_rows *calls, size_t first, int parts)
{
    enum { NUMBERS = 9 };
    Py_ssize_t rows = 0;
    for (uint32_t i = 0; i < calls->rows; i++)
        for (int part = 0; part < parts; part++)
            rows += ((const call_sums *)(const void *)((const char *)row_of(calls, i) + first))[part].n > 0;
    columns64 made;
    if (make_columns64(&made, NUMBERS + 1, rows) != 0)
        return NULL;
    for (uint32_t i = 0; i < calls->rows; i++)
        for (int part = 0; part < parts; part++) {
            const call_row *const row = row_of(calls, i);
            const call_sums *const sums = (const call_sums *)(const void *)((const char *)row + first) + part;
            if (!sums->n)
                continue;
            const int64_t numbers[NUMBERS] = {row->phase, row->rank, row->call,     row->size,  row->depth,
                                              part,       sums->n,   sums->time_ns, sums->bytes};
            put_row64(&made, numbers, NUMBERS, &sums->log_ns);
        }
    return made.bytes;
}

/* The counts of calls from one number on, those that are not 0. */
static PyObject *spreads_table(const keyed_rows *spreads, int first, int end)
{
    Py_ssize_t rows = 0;
    for (uint32_t i = 0; i < spreads->rows; i++)
        for (int bin = first; bin < end; bin++)
            rows += ((const spread_row *)row_of(spreads, i))->n[bin] > 0;
    columns64 made;
    if (make_columns64(&made, 4, rows) != 0)
        return NULL;
    for (uint32_t i = 0; i < spreads->rows; i++)
        for (int bin = first; bin < end; bin++) {
            const spread_row *const row = row_of(spreads, i);
            if (row->n[bin])
                put_row64(&made, (const int64_t[]){row->call, row->size, bin - first, row->n[bin]}, 4, NULL);
        }
    return made.bytes;
}

static PyObject *uses_table(const keyed_rows *uses)
{
    enum { NUMBERS = 3 };
    columns64 made;
    if (make_columns64(&made, NUMBERS, uses->rows) != 0)
        return NULL;
    for (uint32_t i = 0; i < uses->rows; i++) {
        const use_row *const row = row_of(uses, i);
        const int64_t numbers[NUMBERS] = {row->file, row->rank, row->bytes};
        put_row64(&made, numbers, NUMBERS, NULL);
    }
    return made.bytes;
}

static PyObject *targets_table(const keyed_rows *targets)
{
    enum { NUMBERS = 8 };
    columns64 made;
    if (make_columns64(&made, NUMBERS + 1, targets->rows) != 0)
        return NULL;
    for (uint32_t i = 0; i < targets->rows; i++) {
        const target_row *const row = row_of(targets, i);
        const int64_t numbers[NUMBERS] = {row->call,  row->size,        row->target,    row->rank,
                                          row->all.n, row->all.time_ns, row->all.bytes, row->least_ns};
        put_row64(&made, numbers, NUMBERS, &row->all.log_ns);
    }
    return made.bytes;
}

/* A tuple of new references; NULL after an exception if one of them is NULL. */
static PyObject *tuple_of_tables(PyObject *const *tables, int count)
{
    PyObject *result = PyTuple_New(count);
    for (int i = 0; i < count; i++) {
        if (result && tables[i])
            PyTuple_SetItem(result, i, Py_NewRef(tables[i]));
        else
            Py_CLEAR(result);
    }
    for (int i = 0; i < count; i++)
        Py_XDECREF(tables[i]);
    return result;
}

static PyObject *tables_of(const evidence_job *job)
{
    enum { TABLES = 7 };
    const keyed_rows *const calls = &job->calls;
    PyObject *const tables[TABLES] = {calls_table(calls),
                                      parts_table(calls, offsetof(call_row, quarter), QUARTERS),
                                      spreads_table(&job->spreads, BINS, BINS + RAGGED),
                                      parts_table(calls, offsetof(call_row, jumps), JUMPS),
                                      spreads_table(&job->spreads, 0, BINS),
                                      uses_table(&job->uses),
                                      targets_table(&job->targets)};
    return tuple_of_tables(tables, TABLES);
}

/* Turn the result of a loop into that of a function. */
static int has_failed(Py_ssize_t misfit)
{
    if (misfit == NO_MEMORY)
        PyErr_NoMemory();
    else if (misfit >= 0)
        PyErr_Format(PyExc_IndexError, "event %zd has an impossible call, duration or place", misfit);
    return misfit != -1;
}

static PyObject *sum_evidence(PyObject *module, PyObject *args)
{
    (void)module;
    enum { COLUMNS = 11, KINDS = COLUMNS, STRIPES, OWN, ORDER, WANTED, ARRAYS };
    static const array_kind wanted[ARRAYS] = {
        {"rank", 4, 0},     {"call", 2, 0},      {"depth", 1, 0},       {"file", 4, 0},
        {"offset", 8, 0},   {"requested", 8, 0}, {"moved", 8, 0},       {"start", 8, 0},
        {"duration", 8, 0}, {"phase", 8, 0},     {"octaves", 8, 0},     {"kinds", 1, 0},
        {"stripes", 8, 0},  {"own", 8, OR_NONE}, {"order", 8, OR_NONE}, {"quarters", 1, OR_NONE}};
    Py_buffer views[ARRAYS] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, ARRAYS, COLUMNS) != 0)
        goto done;
    evidence_job job = {.rank = views[0].buf,
                        .call = views[1].buf,
                        .depth = views[2].buf,
                        .file = views[3].buf,
                        .offset = views[4].buf,
                        .requested = views[5].buf,
                        .moved = views[6].buf,
                        .start = views[7].buf,
                        .duration = views[8].buf,
                        .phase = views[9].buf,
                        .octaves = views[10].buf,
                        .kinds = views[KINDS].buf,
                        .stripes = views[STRIPES].buf,
                        .own = views[OWN].buf,
                        .order = views[ORDER].buf,
                        .events = length_of(&views[0]),
                        .known_calls = length_of(&views[KINDS]),
                        .files = length_of(&views[STRIPES]) / STRIPE_FACTS,
                        .has_quarters = is_given(&views[WANTED]),
                        .calls = {.bytes = sizeof(call_row), .keys = KEYS_OF_CALLS},
                        .spreads = {.bytes = sizeof(spread_row), .keys = KEYS_OF_SPREADS},
                        .callers = {.bytes = sizeof(caller_row), .keys = KEYS_OF_CALLERS},
                        .stays = {.bytes = sizeof(stay_row), .keys = KEYS_OF_STAYS},
                        .uses = {.bytes = sizeof(use_row), .keys = KEYS_OF_USES},
                        .targets = {.bytes = sizeof(target_row), .keys = KEYS_OF_TARGETS}};
    if (!job.files || (job.own && length_of(&views[OWN]) != job.events) ||
        (job.order && length_of(&views[ORDER]) != job.events)) {
        PyErr_SetString(PyExc_ValueError, "there must be stripes, and own times and places of all events or of none");
        goto done;
    }
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit = sum_evidence_events(&job);
    Py_END_ALLOW_THREADS
    if (!has_failed(misfit))
        result = tables_of(&job);
    keyed_rows *const tables[] = {&job.calls, &job.spreads, &job.callers, &job.stays, &job.uses, &job.targets};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        free_keyed(tables[i]);
done:
    release_arrays(views, ARRAYS);
    return result;
}

PyMethodDef evidence_functions[] = {{"sum_evidence", sum_evidence, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
