#include "banner.h"
#include "units.h"

#include <calls/calls.h>
#include <core/bounded_string.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <core/site_settings.h>
#include <spool/run_directory.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_ROOM 512
#define WIDTH 80
#define SHOWN_PATH 40 /* characters; of longer paths the end is shown */

static struct stat error_stream;

static int look_at_error_stream(struct stat *found)
{
    return ENSIO_RAW(SYS_newfstatat, 2, "", found, AT_EMPTY_PATH) == 0;
}

void ensio_banner_begin(void)
{
    look_at_error_stream(&error_stream);
}

/* The program may have closed standard error, and a user's file may have got its number. */
static int still_error_stream(void)
{
    struct stat now;
    return look_at_error_stream(&now) && now.st_dev == error_stream.st_dev && now.st_ino == error_stream.st_ino;
}

int ensio_banner_wanted(int unless)
{
    const char *wish = ensio_setting("ENSIO_BANNER");
    if (!wish || !*wish)
        return unless;
    return strcmp(wish, "short") == 0  ? ENSIO_BANNER_SHORT
           : strcmp(wish, "full") == 0 ? ENSIO_BANNER_FULL
           : strcmp(wish, "none") == 0 ? ENSIO_BANNER_NONE
                                       : unless;
}

static char text[32768];
static struct ensio_string banner;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
    char line[LINE_ROOM];
    __builtin_va_list values;
    __builtin_va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    __builtin_va_end(values);
    for (char *at = line; *at; at++) /* names of files and programs may contain any character */
        if (((unsigned char)*at < ' ' && *at != '\n') || *at == 0x7f)
            *at = '?';
    ensio_add(&banner, line);
}

static void add_rule(const char *title)
{
    char rule[WIDTH + 1];
    memset(rule, '#', WIDTH);
    rule[WIDTH] = '\0';
    add("##%s%s\n", title, rule + strlen(title) + 2);
}

/* Arguments may hold secrets, which ensio info masks. */
static void add_command(void)
{
    const int bytes = (int)strcspn(ensio_settings.command, "\x1f");
    add("# command   : %.*s%s\n", bytes < 62 ? bytes : 62, ensio_settings.command,
        ensio_settings.command[bytes] || bytes > 62 ? " ..." : "");
}

/* When bytes moved is not known here: only the times of calls are. Tasks and threads need not move bytes at the same
 * time, so that only those of a single one have a rate. */
static void add_transfer(const char *label, const char *calls, uint64_t bytes, uint64_t slowest_ns,
                         const struct ensio_sums *sum)
{
    char amount[ENSIO_UNITS_ROOM], rate[ENSIO_UNITS_ROOM], time[ENSIO_UNITS_ROOM];
    add("# %-9s : %s", label, ensio_text_of_bytes(amount, (double)bytes));
    if (bytes && slowest_ns && (sum->tasks > 1 || sum->threads > 1))
        add(" in %s of %s (%s)", ensio_text_of_ns(time, slowest_ns), calls,
            sum->tasks > 1 ? "slowest task" : "all threads");
    else if (bytes && slowest_ns)
        add(", %s/s by %s in %s", ensio_text_of_bytes(rate, 1e9 * (double)bytes / (double)slowest_ns),
            ensio_text_of_ns(time, slowest_ns), calls);
    add("\n");
}

static int has_syncs(const struct ensio_totals *totals)
{
    for (int call = 0; call < ENSIO_CALL_COUNT; call++)
        if (totals->sum.calls[call].count && ensio_call_ops[ensio_call_numbers[call]] == ENSIO_OP_SYNC)
            return 1;
    return 0;
}

static void add_flights(const struct ensio_totals *totals)
{
    const uint64_t flight_ns = totals->sum.flight_ns;
    char time[ENSIO_UNITS_ROOM], share[ENSIO_UNITS_ROOM];
    if (flight_ns)
        add("# in flight : %s of non-blocking I/O, %s of it hidden\n", ensio_text_of_ns(time, flight_ns),
            ensio_text_of_share(share, (double)totals->sum.hidden_ns / (double)flight_ns));
}

/* What `ensio info` calls the time in I/O, as shares of the wall time of the task that began first. */
static void add_time_in_io(const struct ensio_totals *totals, const char *until)
{
    const struct ensio_sums *sum = &totals->sum;
    const double wall_ns = totals->most.wall_ns ? (double)totals->most.wall_ns : 1.0;
    const double mean_ns = (double)sum->io_ns / (double)(sum->io_tasks ? sum->io_tasks : 1);
    char text_of[ENSIO_UNITS_ROOM];
    add("# wall time : %s until %s\n", ensio_text_of_ns(text_of, totals->most.wall_ns), until);
    add("# in I/O    : %s", ensio_text_of_share(text_of, mean_ns / wall_ns));
    if (sum->tasks > 1)
        add(" on average over %" PRIu64 " task%s with I/O", sum->io_tasks, sum->io_tasks == 1 ? "" : "s");
    if (sum->threads > sum->tasks)
        add(sum->tasks > 1 ? " (%" PRIu64 " threads)" : " of the time of %" PRIu64 " threads", sum->threads);
    else if (sum->tasks == 1)
        add(" of it");
    if (sum->tasks > 1)
        add(", %s in the slowest", ensio_text_of_share(text_of, (double)totals->most.io_ns / wall_ns));
    add("\n");
}

static void add_slowest(const struct ensio_totals *totals)
{
    const struct ensio_slowest *slowest = &totals->slowest;
    const int64_t start_ns = (int64_t)(slowest->start_unix_ns - totals->begin_unix_ns);
    char name[64], time[ENSIO_UNITS_ROOM], start[ENSIO_UNITS_ROOM];
    if (!slowest->duration_ns)
        return;
    ensio_call_name(slowest->call, name, sizeof name);
    add("# slowest   : %s of rank %" PRIu32 ", %s at %s", name, slowest->rank,
        ensio_text_of_ns(time, slowest->duration_ns), ensio_text_of_ns(start, start_ns > 0 ? (uint64_t)start_ns : 0));
    /* The end of a path identifies a file better than its beginning. */
    const size_t length = strlen(slowest->file), cut = length > SHOWN_PATH ? length - SHOWN_PATH : 0;
    if (length)
        add(" on %s%s", cut ? "..." : "", slowest->file + cut);
    add("\n");
}

/* To the right. The sign for micro has two bytes and takes one place. */
static void add_cell(int width, const char *cell)
{
    for (const char *at = cell; *at; at++)
        width += ((unsigned char)*at & 0xc0) == 0x80;
    add("%*s", width, cell);
}

static void add_call_table(const struct ensio_totals *totals)
{
    uint8_t done[ENSIO_CALL_COUNT] = {0};
    char cell[ENSIO_UNITS_ROOM];
    add("#\n# %-22s%10s%10s%11s%9s%9s%7s\n", "call", "count", "bytes", "time", "mean", "longest", "errors");
    for (;;) { /* in descending order of time */
        int most = -1;
        char name[64];
        for (int call = 0; call < ENSIO_CALL_COUNT; call++)
            if (!done[call] && totals->sum.calls[call].count &&
                (most < 0 || totals->sum.calls[call].time_ns > totals->sum.calls[most].time_ns))
                most = call;
        if (most < 0)
            return;
        done[most] = 1;
        ensio_call_name(ensio_call_numbers[most], name, sizeof name);
        const uint64_t count = totals->sum.calls[most].count, time_ns = totals->sum.calls[most].time_ns;
        add("# %-22s%10" PRIu64, name, count);
        add_cell(10,
                 totals->sum.calls[most].bytes ? ensio_text_of_bytes(cell, (double)totals->sum.calls[most].bytes) : "");
        add_cell(11, ensio_text_of_ns(cell, time_ns));
        add_cell(9, ensio_text_of_ns(cell, time_ns / count));
        add_cell(9, ensio_text_of_ns(cell, totals->most.call_ns[most]));
        add("%7" PRIu64 "\n", totals->sum.calls[most].errors);
    }
}

void ensio_banner_print(int kind, const struct ensio_totals *totals, uint64_t tasks, uint64_t hosts, const char *until,
                        const char *why_one)
{
    uint64_t calls = 0;
    int error = errno;
    static int printed;
    if (kind == ENSIO_BANNER_NONE || printed++ || !still_error_stream())
        return;
    for (int call = 0; call < ENSIO_CALL_COUNT; call++)
        calls += totals->sum.calls[call].count;
    banner = ensio_string_in(text, sizeof text);
    add_rule("ensio " ENSIO_VERSION);
    add_command();
    add("# tasks     : %" PRIu64, tasks);
    if (hosts)
        add(" on %" PRIu64 " host%s", hosts, hosts == 1 ? "" : "s");
    if (totals->sum.tasks < tasks)
        add("; the numbers below are those of rank %" PRId32 " only, because %s",
            ensio_settings.rank > 0 ? ensio_settings.rank : 0, why_one);
    add("\n");
    add_time_in_io(totals, until);
    add("# calls     : %" PRIu64 ", dropped %" PRIu64 "\n", calls, totals->sum.dropped);
    add_transfer("read", "reads", totals->sum.bytes_read, totals->most.read_ns, &totals->sum);
    add_transfer("written", has_syncs(totals) ? "writes, syncs" : "writes", totals->sum.bytes_written,
                 totals->most.write_ns, &totals->sum);
    add_flights(totals);
    add_slowest(totals);
    add("# recorded  : %s\n", ensio_run_directory);
    if (kind == ENSIO_BANNER_FULL)
        add_call_table(totals);
    add_rule("");
    ensio_tell(banner.text, banner.length);
    errno = error;
}

void ensio_banner_at_exit(void)
{
    static struct ensio_totals totals;
    const int kind = ensio_banner_wanted(ENSIO_BANNER_NONE);
    if (kind == ENSIO_BANNER_NONE || ensio_settings.rank > 0 || ensio_totals(&totals) != 0)
        return;
    ensio_banner_print(kind, &totals, ensio_settings.tasks ? ensio_settings.tasks : 1, 0, "exit",
                       "it did not call MPI_Finalize");
}
