/* The table of objects of I/O libraries: entries are never torn by concurrent writers, and files are evicted last. */
#include "check.h"

#include <core/recorder.h>
#include <layers/library_objects.h>

#include <pthread.h>

#define THREADS 3
#define ROUNDS 1000000
#define IDS 6 /* more than the table has places for, if their distance is its length */
#define APART 1024

enum { library = 3, other = 4 };

static struct ensio_object object_of(int64_t id)
{
    return (struct ensio_object){
        .id = id,
        .library = library,
        .name = (uint64_t)id * 7919,
        .type_bytes = (uint64_t)id + 1,
        .offset = -id,
        .left_out = 1,
        .generation = ensio_process->generation,
    };
}

static void *use(void *state)
{
    unsigned random = (unsigned)(uintptr_t)state;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525 + 1013904223;
        const int64_t id = 5 + APART * (int64_t)(random >> 8) % (APART * IDS);
        const struct ensio_object wanted = object_of(id), found = ensio_object_find(library, id);
        if (found.generation)
            CHECK(found.id == id && found.name == wanted.name && found.type_bytes == wanted.type_bytes &&
                  found.offset == -id);
        if (random >> 30 == 0)
            ensio_object_forget(library, id);
        else
            ensio_object_keep(&wanted);
    }
    return NULL;
}

static void entries_are_whole_while_others_write(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, use, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void files_are_forgotten_last(void)
{
    struct ensio_object file = object_of(9);
    file.is_file = 1;
    ensio_object_keep(&file);
    for (int64_t id = 9 + APART; id < 9 + 1000 * APART; id += APART) {
        const struct ensio_object set = object_of(id);
        ensio_object_keep(&set);
        CHECK(ensio_object_find(library, id).generation);
    }
    CHECK(ensio_object_find(library, 9).is_file);
    CHECK(!ensio_object_find(library, 9 + APART).generation);
}

static void libraries_are_told_apart(void)
{
    const struct ensio_object one = object_of(77);
    ensio_object_keep(&one);
    CHECK(!ensio_object_find(other, 77).generation);
    ensio_object_forget_all(other);
    CHECK(ensio_object_find(library, 77).generation);
    ensio_object_forget_all(library);
    CHECK(!ensio_object_find(library, 77).generation);
    CHECK(!ensio_object_find(library, 9).generation);
}

int main(void)
{
    ensio_process->generation = 1; /* as in a process that is recorded */
    entries_are_whole_while_others_write();
    files_are_forgotten_last();
    libraries_are_told_apart();
    return 0;
}
