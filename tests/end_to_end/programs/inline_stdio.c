/* Moves bytes by inline functions of stdio between calls: inline_stdio FILE. Every call must succeed as without a
 * recorder, and leave errno. */
#include <errno.h>
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

int main(int count, char **words)
{
    char line[600], text[600];
    FILE *stream = fopen(words[count - 1], "w+");
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
            CHECK(ungetc(first, stream) == first && fgets(line, sizeof line, stream) == line);
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
    PUT('c', fseek(stream, 0, SEEK_END) ? NULL : stream);
    CHECK(fclose(stream) == 0 && errno == EXDEV);
    return 0;
}
