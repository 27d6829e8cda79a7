#include "working_folder.h"

#include <core/rawsys.h>
#include <core/settings.h>

#include <string.h>

/* Folders between which a program goes back and forth. Beyond them, a folder gets another identifier. */
#define MOST_FOLDERS 16

static struct {
    char text[ENSIO_PATH_ROOM];
    uint32_t length, id;
} folders[MOST_FOLDERS];
static uint32_t next_folder, last_id = ENSIO_ROOT_FOLDER;

uint64_t ensio_working_folder;
uint32_t ensio_working_folder_changing;

static uint32_t id_of(const char *text, uint32_t length)
{
    for (uint32_t i = 0; i < MOST_FOLDERS && folders[i].id; i++)
        if (folders[i].length == length && memcmp(folders[i].text, text, length) == 0)
            return folders[i].id;
    if (length >= sizeof folders->text || last_id == UINT32_MAX)
        return ENSIO_NO_FOLDER;
    const uint32_t place = next_folder++ % MOST_FOLDERS;
    memcpy(folders[place].text, text, length);
    folders[place].length = length;
    return folders[place].id = ++last_id;
}

/* The identifier becomes that of the working folder only if no change was noted since before the kernel was asked. */
long ensio_folder_read(char *to, uint32_t room, uint32_t *id)
{
    uint64_t before = __atomic_load_n(&ensio_working_folder, __ATOMIC_SEQ_CST);
    const int changing = __atomic_load_n(&ensio_working_folder_changing, __ATOMIC_SEQ_CST) != 0;
    const long length = ENSIO_RAW(SYS_getcwd, to, room) - 1;
    *id = ENSIO_NO_FOLDER;
    if (length <= 0 || to[0] != '/' || changing)
        return length;
    *id = id_of(to, (uint32_t)length);
    const uint64_t after = (before & ~(uint64_t)UINT32_MAX) | *id;
    if (before != after)
        __atomic_compare_exchange_n(&ensio_working_folder, &before, after, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return length;
}

void ensio_folder_forget(void)
{
    uint64_t before = __atomic_load_n(&ensio_working_folder, __ATOMIC_RELAXED), after;
    do
        after = ((before >> 32) + 1) << 32;
    while (!__atomic_compare_exchange_n(&ensio_working_folder, &before, after, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

void ensio_folder_change_begin(void)
{
    __atomic_fetch_add(&ensio_working_folder_changing, 1, __ATOMIC_SEQ_CST);
}

void ensio_folder_change_end(void)
{
    ensio_folder_forget();
    __atomic_fetch_sub(&ensio_working_folder_changing, 1, __ATOMIC_SEQ_CST);
}

void ensio_folder_never_known(void)
{
    ensio_folder_change_begin();
}
