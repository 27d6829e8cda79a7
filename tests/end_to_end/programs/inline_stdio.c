/* Moves bytes by inline functions of stdio between calls: inline_stdio FILE LINES. Every call must succeed as without a
 * recorder, and leave errno. No inline function moves the lines that threads write to LINES. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES 3000
#define CHECK(condition) \
    do \
        if (!(condition)) \
            exit(__LINE__ % 200 + 1); \
    while (0)

/* What compilers make of getc_unlocked and putc_unlocked. */
#define GET(stream) __getc_unlocked_body(stream)
#define PUT(character, stream) CHECK(__putc_unlocked_body(character, stream) == (character))

static void *write_lines(void *stream)
{
    for (int i = 0; i < 10 * LINES; i++) {
        CHECK(fputs("one of many lines, from several threads\n", stream) >= 0);
        CHECK(i % 10 || fflush(stream) == 0);
    }
    return NULL;
}

int main(int count, char **words)
{
    char line[600], text[600], *memory;
    size_t length;
    pthread_t threads[4];
    fclose(stdin); /* so that the file has descriptor 0, which glibc leaves in streams without one */
    FILE *stream = fopen(words[1], "w+"), *in_memory = open_memstream(&memory, &length);
    for (int i = 0; i < LINES; i++)
        PUT('m', in_memory);
    CHECK(fputs("memory", in_memory) >= 0 && fclose(in_memory) == 0 && length == LINES + 6);
    FILE *lines = fopen(words[2], "w");
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, write_lines, lines) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(fclose(lines) == 0);
    errno = EXDEV;
    memset(text, 'x', sizeof text);
    for (int i = 0; i < LINES; i++) { /* inline code fills the buffer, calls empty it, and the reverse */
        for (int k = 0; k < i % 50; k++)
            PUT('a', stream);
        CHECK(fwrite(text, 1, (size_t)i % 500, stream) == (size_t)i % 500);
        PUT('\n', stream);
        CHECK(i % 100 || fflush(stream) == 0);
    }
    CHECK(fseek(stream, 0, SEEK_SET) == 0);
    for (int i = 0; i < LINES; i++) {
        const int first = GET(stream);
        CHECK(first == (i % 50 ? 'a' : i % 500 ? 'x' : '\n'));
        if (i % 3 == 0) {
            const int back = first == '\n' || i % 2 ? first : 'u';
            CHECK(ungetc(back, stream) == back && fgets(line, sizeof line, stream) == line && *line == back);
            CHECK(strlen(line) == (size_t)(i % 50 + i % 500 + 1));
        } else
            for (int last = first; last != '\n';)
                last = GET(stream);
    }
    CHECK(GET(stream) == EOF && feof(stream) && errno == EXDEV);
    clearerr(stream);
    for (int i = 0; i < 100; i++) { /* less than a buffer between two seeks */
        CHECK(fseek(stream, 0, SEEK_END) == 0);
        PUT('b', stream);
        CHECK(fseek(stream, i, SEEK_SET) == 0);
        CHECK(GET(stream) != EOF);
    }
    CHECK(fseek(stream, 0, SEEK_END) == 0);
    PUT('c', stream);
    CHECK((stream = freopen(words[1], "a", stream)) != NULL);
    PUT('d', stream);
    errno = EXDEV;
    CHECK(fclose(stream) == 0 && errno == EXDEV);
    return 0;
}
