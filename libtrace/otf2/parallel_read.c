/* parallel_read.c: reads an archive by several processes, because libotf2 takes most of the time. One reader reads all
 * locations of a group, which are the threads of a traced process. The order of a rank's rows therefore does not depend
 * on the number of readers, and state that the locations of a group share stays in one process. */
#include "reader.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEAST_RECORDS (1ULL << 17) /* of a reader: those of 30,000 calls, which take as long as starting a process */
#define MOST_RECORDS (1ULL << 38)  /* limit for a location, so that sums do not overflow */

static int by_group(const void *a, const void *b)
{
    const struct ensio_place *one = *(struct ensio_place *const *)a, *other = *(struct ensio_place *const *)b;
    if (one->group != other->group)
        return one->group < other->group ? -1 : 1;
    return one < other ? -1 : one > other;
}

static uint64_t records_of(const struct ensio_place *place)
{
    return place->events < MOST_RECORDS ? place->events : place->events == OTF2_UNDEFINED_UINT64 ? 1 : MOST_RECORDS;
}

/* Assigns each location to a reader, with about the same number of records each according to the definitions. Returns
 * the number of readers. */
uint32_t ensio_deal_locations(uint32_t readers)
{
    size_t count = ensio_archive.place_count;
    struct ensio_place **places = ensio_more(NULL, count * sizeof(struct ensio_place *));
    uint64_t all = 0, so_far = 0;
    uint32_t reader = 0;
    for (size_t i = 0; i < count; i++) {
        places[i] = ensio_archive.places + i;
        all += records_of(places[i]);
    }
    if (readers > ENSIO_MOST_READERS)
        readers = ENSIO_MOST_READERS;
    if (readers > all / LEAST_RECORDS)
        readers = (uint32_t)(all / LEAST_RECORDS);
    if (count)
        qsort(places, count, sizeof *places, by_group);
    for (size_t i = 0; i < count; i++) {
        bool starts_group = i && places[i]->group != places[i - 1]->group;
        if (starts_group && reader + 1 < readers && so_far >= all / readers * (reader + 1))
            reader++;
        places[i]->reader = reader;
        so_far += records_of(places[i]);
    }
    free(places);
    return reader + 1;
}

/* The memory limit of one process is divided among all of them. */
static void share_memory(uint32_t readers)
{
    struct rlimit memory;
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (getrlimit(RLIMIT_AS, &memory) == 0 && memory.rlim_cur != RLIM_INFINITY && file &&
        fscanf(file, "%llu", &pages) == 1) {
        rlim_t used = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
        if (memory.rlim_cur > used)
            memory.rlim_cur = used + (memory.rlim_cur - used) / readers;
        setrlimit(RLIMIT_AS, &memory);
    }
    if (file)
        fclose(file);
}

static _Noreturn void be_reader(uint32_t number, uint32_t readers, pid_t parent, struct ensio_counts *counts)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(2);
    share_memory(readers);
    memset(&ensio_archive.counts, 0, sizeof ensio_archive.counts);
    ensio_read_share(number);
    *counts = ensio_archive.counts;
    _exit(0);
}

static void add_counts(struct ensio_counts *all, const struct ensio_counts *more)
{
    all->unknown_records += more->unknown_records;
    all->never_complete += more->never_complete;
    all->never_left += more->never_left;
    all->without_begin += more->without_begin;
    all->missing += more->missing;
    all->without_bytes += more->without_bytes;
    all->read += more->read;
    all->mapped += more->mapped;
    if (more->mapped < more->read)
        all->unmapped = more->unmapped;
}

/* If one fails, it has reported why, or libotf2 crashed in it; the others are then useless. */
static void wait_for(pid_t *children, uint32_t count)
{
    for (uint32_t left = count; left;) {
        int status;
        pid_t ended = wait(&status);
        uint32_t which = 0;
        while (which < count && children[which] != ended)
            which++;
        if (which == count)
            continue;
        children[which] = 0;
        left--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        for (uint32_t i = 0; i < count; i++)
            if (children[i])
                kill(children[i], SIGKILL);
        _exit(2);
    }
}

void ensio_read_side_by_side(uint32_t readers)
{
    struct ensio_counts *counts =
        mmap(NULL, readers * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[ENSIO_MOST_READERS], parent = getpid();
    if (counts == MAP_FAILED)
        ensio_fail("there is not enough memory");
    ensio_share_output();
    for (uint32_t i = 0; i < readers; i++) {
        children[i] = fork();
        if (children[i] == 0)
            be_reader(i, readers, parent, counts + i);
        if (children[i] < 0)
            ensio_fail("no process can be created to read it");
    }
    wait_for(children, readers);
    for (uint32_t i = 0; i < readers; i++)
        add_counts(&ensio_archive.counts, counts + i);
    ensio_check_mappings(&ensio_archive.counts);
}
