/* The fault of strided read-ahead: which reads suffer, and how much. */
#include "pfs_world.h"

#define MIB (INT64_C(1) << 20)

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
}

/* MADbench's middle phase, in small: two reads, then alternating writes and reads. Each read lies one slot after the
 * last; a slot is larger than a read. */
static void a_stride_is_read_in_single_pages_once_memory_is_full_of_writes(void)
{
    const char *text = PLAIN "tasks_per_node 1\npage_cache_MiB 8\nstride_window_MiB 2\npage_ms 1\npage_noise 0\n"
                             "fault.strided-readahead 1\n";
    struct pfs *model = world(text, 1, 1, 1);
    int file = pfs_file(model, 1);
    const int64_t size = 8 * MIB, slot = size + MIB;
    const double healthy_ms = (double)size / 1e5, window_ms = 2 * 256;
    int64_t now_ns = 0, took_ns;
    for (int i = 0; i < 8; i++)
        now_ns += call_ns(model, now_ns, 0, PFS_WRITE, file, i * slot, size);
    for (int i = 0; i < 8; i++) {
        now_ns += took_ns = call_ns(model, now_ns, 0, PFS_READ, file, i * slot, size);
        double slow_ms = i < 3 ? 0 : (i - 2 < 4 ? i - 2 : 4) * window_ms;
        CHECK(near(ms(took_ns), slow_ms > healthy_ms ? slow_ms : healthy_ms, 1e-3));
        if (i > 0)
            now_ns += call_ns(model, now_ns, 0, PFS_WRITE, file, (i - 1) * slot, size);
    }
    now_ns += call_ns(model, now_ns, 0, PFS_WRITE, file, 7 * slot, size);
    for (int i = 0; i < 8; i++) { /* the same reads without writes between them */
        now_ns += took_ns = call_ns(model, now_ns, 0, PFS_READ, file, i * slot, size);
        CHECK(near(ms(took_ns), healthy_ms, 1e-3));
    }
    free(model);
}

/* Consecutive reads have no gap and therefore no stride. */
static void reads_in_a_row_are_no_stride(void)
{
    const char *text = PLAIN "tasks_per_node 1\npage_cache_MiB 1\nfault.strided-readahead 1\n";
    struct pfs *model = world(text, 1, 1, 1);
    int file = pfs_file(model, 1);
    int64_t now_ns = 0, took_ns;
    for (int i = 0; i < 8; i++) {
        now_ns += took_ns = call_ns(model, now_ns, 0, PFS_READ, file, i * 8 * MIB, 8 * MIB);
        CHECK(near(ms(took_ns), 8 * (double)MIB / 1e5, 1e-3));
        now_ns += call_ns(model, now_ns, 0, PFS_WRITE, file, i * 8 * MIB, 8 * MIB);
    }
    free(model);
}

int main(void)
{
    a_stride_is_read_in_single_pages_once_memory_is_full_of_writes();
    reads_in_a_row_are_no_stride();
    puts("2 passed, 0 failed");
    return 0;
}
