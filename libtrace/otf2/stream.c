#include "stream.h"

#include <errno.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char output[1 << 16];
static size_t output_used;
static sem_t *turn; /* held by the process that sends */

_Noreturn void ensio_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    fflush(stderr);
    _exit(2);
}

void *ensio_more(void *old, size_t bytes)
{
    void *memory = realloc(old, bytes ? bytes : 1);
    if (!memory)
        ensio_fail("there is not enough memory (%zu bytes were requested)", bytes);
    return memory;
}

static void write_all(const char *data, size_t bytes)
{
    while (bytes) {
        ssize_t done = write(STDOUT_FILENO, data, bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            _exit(2); /* the other side has closed the pipe */
        data += done;
        bytes -= (size_t)done;
    }
}

void ensio_flush(void)
{
    write_all(output, output_used);
    output_used = 0;
}

static void put(const void *data, size_t bytes)
{
    if (output_used + bytes > sizeof output)
        ensio_flush();
    if (bytes > sizeof output) {
        write_all(data, bytes);
        return;
    }
    memcpy(output + output_used, data, bytes);
    output_used += bytes;
}

void ensio_send(uint32_t kind, uint32_t count, const void *data, uint64_t bytes)
{
    struct ensio_message head = {kind, count, bytes};
    while (turn && sem_wait(turn) != 0) {
        /* interrupted */
    }
    put(&head, sizeof head);
    if (bytes)
        put(data, bytes);
    if (turn) {
        ensio_flush();
        sem_post(turn);
    }
}

void ensio_share_output(void)
{
    ensio_flush(); /* output so far is sent by one process */
    turn = mmap(NULL, sizeof *turn, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (turn == MAP_FAILED || sem_init(turn, 1, 1) != 0)
        ensio_fail("processes cannot take turns");
}

/* The number of bytes before the end of the input. */
static size_t read_all(char *data, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = read(STDIN_FILENO, data + done, bytes - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done;
}

int ensio_receive_head(struct ensio_message *message)
{
    size_t got = read_all((char *)message, sizeof *message);
    if (got && got < sizeof *message)
        ensio_fail("the input ends within a message");
    return got != 0;
}

void ensio_receive(void *data, size_t bytes)
{
    if (read_all(data, bytes) != bytes)
        ensio_fail("the input ends within a message");
}

char *ensio_receive_texts(const struct ensio_message *message)
{
    char *texts = ensio_more(NULL, message->bytes + 1);
    ensio_receive(texts, message->bytes);
    texts[message->bytes] = '\0';
    return texts;
}
