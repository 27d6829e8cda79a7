/* The table of mapped files agrees with a page-by-page model for any sequence of mapping and unmapping. */
#include "check.h"

#include <files/paths.h>
#include <files/mappings.h>

#include <stdlib.h>

#define PAGE 4096U
#define PAGES 200U
#define STEPS 200000

/* The parts of the recorder that the table needs. */
static struct ensio_process process;
struct ensio_process *ensio_process = &process;
static uint32_t stored;

int ensio_file_store(uint32_t number)
{
    stored += number > 0;
    return 0;
}

static struct {
    uint32_t file;
    int64_t offset;
} model[PAGES];

static const void *address(unsigned page)
{
    return (const void *)(uintptr_t)((page + 1) * PAGE);
}

static void compare(unsigned page, unsigned pages)
{
    struct ensio_mapping found;
    unsigned first = page;
    while (first < page + pages && !model[first].file)
        first++;
    int there_is = ensio_mapping_find(address(page), pages * PAGE, &found);
    CHECK(there_is == (first < page + pages));
    if (there_is) {
        CHECK(found.first == (uintptr_t)address(first));
        CHECK(found.file == model[first].file);
        CHECK(found.offset == model[first].offset);
    }
}

static void random_step(void)
{
    unsigned page = (unsigned)rand() % PAGES, pages = (unsigned)rand() % (PAGES - page < 12 ? PAGES - page : 12) + 1;
    unsigned short_of_a_page = (unsigned)rand() % PAGE; /* a part of a page counts as the whole page */
    int64_t offset = (int64_t)(rand() % 1000) * PAGE;
    uint32_t file = (unsigned)rand() % 3 ? (unsigned)rand() % 50 + 1 : 0;
    if (file)
        ensio_mapping_add(address(page), pages * PAGE - short_of_a_page, offset, file);
    else
        ensio_mapping_cut(address(page), pages * PAGE - short_of_a_page);
    for (unsigned i = 0; i < pages; i++) {
        model[page + i].file = file;
        model[page + i].offset = offset + (int64_t)(i * PAGE);
    }
    page = (unsigned)rand() % PAGES;
    compare(page, (unsigned)rand() % (PAGES - page) + 1);
}

static void full_table(void)
{
    struct ensio_mapping found;
    for (unsigned i = 0; i < ENSIO_MAPPINGS + 10; i++)
        ensio_mapping_add(address(2 * i), PAGE, 0, i + 1);
    CHECK(ensio_mappings == ENSIO_MAPPINGS);
    CHECK(!ensio_mapping_find(address(2 * ENSIO_MAPPINGS), PAGE, &found));
    CHECK(ensio_mapping_find(address(2 * ENSIO_MAPPINGS - 2), PAGE, &found) && found.file == ENSIO_MAPPINGS);
    ensio_mapping_cut(address(0), (size_t)PAGE * 4 * ENSIO_MAPPINGS);
    CHECK(ensio_mappings == 0);
    ensio_mapping_add(address(0), 3 * PAGE, 0, 1);
    for (unsigned i = 2; i < ENSIO_MAPPINGS + 1; i++)
        ensio_mapping_add(address(2 * i), PAGE, 0, 2);
    ensio_mapping_cut(address(1), PAGE); /* splits one into two without room for both: the second is lost */
    CHECK(ensio_mapping_find(address(0), PAGE, &found));
    CHECK(!ensio_mapping_find(address(1), 2 * PAGE, &found));
    CHECK(ensio_mappings == ENSIO_MAPPINGS);
}

int main(void)
{
    srand(3);
    for (int step = 0; step < STEPS; step++)
        random_step();
    for (unsigned page = 0; page < PAGES; page++)
        compare(page, 1);
    ensio_mappings_store_files();
    CHECK(stored == ensio_mappings && stored > 0);
    ensio_mapping_cut(address(0), (size_t)PAGES * PAGE);
    CHECK(ensio_mappings == 0);
    full_table();
    struct ensio_mapping found;
    CHECK(!ensio_mapping_find(address(0), 0, &found));
    CHECK(!ensio_mapping_find(address(0), SIZE_MAX, &found)); /* rounds up to nothing, as in the kernel */
    CHECK(ensio_mapping_find(address(0), SIZE_MAX - PAGE, &found));
    return 0;
}
