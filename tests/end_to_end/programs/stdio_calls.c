/* Makes every call of the table of streams on files in the folder that it is given. For each call on a.data it prints,
 * on descriptor 3, the event that is to be recorded: name, bytes asked for, bytes moved, errno, offset; all taken from
 * what it passed and what it got back. Built also with 64-bit names, with fortified names, and without the compiler's
 * knowledge of the functions. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int results;

/* Through pointers, or the compiler takes them from the header, where they are inline. */
static int (*volatile get_unlocked)(FILE *) = getc_unlocked;
static int (*volatile put_unlocked)(int, FILE *) = putc_unlocked;

static void say(const char *call, long long asked, long long moved, int error, long long offset)
{
    dprintf(results, "%s %lld %lld %d %lld\n", call, asked, error ? -1 : moved, error, offset);
}

static int print_values(FILE *stream, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int printed = vfprintf(stream, format, values);
    va_end(values);
    return printed;
}

static int scan_values(FILE *stream, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int scanned = vfscanf(stream, format, values);
    va_end(values);
    return scanned;
}

static void write_all(FILE *file, char *buffer, size_t ten)
{
    say("fwrite", 100, 10 * fwrite(buffer, 10, ten, file), 0, -1);
    say("fwrite", 7, fwrite_unlocked(buffer, 1, 7 + (ten > 99), file), 0, -1);
    say("fwrite", 0, fwrite(buffer, 0, ten, file), 0, -1);
    buffer[20] = '\0';
    say("fputs", 20, 20 * (fputs(buffer, file) >= 0), 0, -1);
    say("fputs", 10, 10 * (fputs_unlocked(buffer + 10, file) >= 0), 0, -1);
    buffer[20] = 'x';
    say("fputc", 1, fputc('a', file) == 'a', 0, -1);
    say("fputc", 1, putc('\n', file) == '\n', 0, -1);
    int printed = fprintf(file, "%zu %s\n", ten, "words");
    say("fprintf", printed, printed, 0, -1);
    printed = print_values(file, "%zu %s\n", ten, "more words");
    say("fprintf", printed, printed, 0, -1);
    say("ftell", 0, 0, 0, ftell(file));
    say("fseek", 0, fseek(file, 3, SEEK_SET), 0, 3);
    say("fseek", 0, fseeko(file, -2, SEEK_END), 0, -1);
    int failed = fseek(file, -5, SEEK_SET);
    say("fseek", 0, failed, errno, -1);
    say("ftell", 0, 0, 0, ftello(file));
    say("fflush", 0, fflush(file), 0, -1);
    fpos_t place;
    say("fseek", 0, fseek(file, 41, SEEK_SET), 0, 41);
    say("ftell", 0, fgetpos(file, &place), 0, 41);
    rewind(file);
    say("rewind", 0, 0, 0, 0);
    say("fseek", 0, fsetpos(file, &place), 0, 41);
    say("ftell", 0, 0, 0, ftell(file));
    rewind(file);
    say("rewind", 0, 0, 0, 0);
}

static void read_all(FILE *file, char *buffer, size_t ten)
{
    int number;
    char word[64], *line = NULL;
    size_t room = 0;
    ssize_t got;
    say("fread", 40, 10 * fread(buffer, 10, ten - 6, file), 0, -1);
    say("fread", 67, fread_unlocked(buffer, 1, ten + 57, file), 0, -1);
    say("fgets", 20, strlen(fgets(buffer, ten + 11, file)), 0, -1);
    say("fgetc", 1, fgetc(file) != EOF, 0, -1);
    say("fgetc", 1, getc(file) != EOF, 0, -1);
    got = getline(&line, &room, file);
    say("getdelim", got, got, 0, -1);
    got = getdelim(&line, &room, ' ', file);
    say("getdelim", got, got, 0, -1);
    say("fscanf", 0, 0 * fscanf(file, "%63s", word), 0, -1);
    say("fscanf", 0, 0 * scan_values(file, "%d %63s", &number, word), 0, -1);
    say("fgets", 20, strlen(fgets_unlocked(buffer, ten + 11, file)), 0, -1);
    say("fread", 70, 7 * fread(buffer, 7, ten, file), 0, -1);
    say("fread", 70, 7 * fread(buffer, 7, ten, file), 0, -1);
    say("fgets", 20, fgets(buffer, ten + 11, file) != NULL, 0, -1);
    say("fgetc", 1, fgetc(file) != EOF, 0, -1);
    say("getdelim", 0, getline(&line, &room, file) + 1, 0, -1);
    say("fscanf", 0, fscanf(file, "%63s", word) + 1, 0, -1);
    say("fputc", 1, 0, fputc('x', file) == EOF ? errno : 0, -1);
    free(line);
}

int main(int count, char **arguments)
{
    char buffer[4096], own[BUFSIZ];
    /* a length that the compiler cannot know, so that fortified calls check it when they run */
    size_t ten = 8 + (size_t)count;
    results = fcntl(3, F_GETFD) < 0 ? open("/dev/null", O_WRONLY) : 3;
    memset(buffer, 'x', sizeof buffer);
    if (count != 2 || chdir(arguments[1]) != 0)
        return 2;
    FILE *file = fopen("a.data", "w+");
    say("fopen", 0, 0, 0, -1);
    say("setvbuf", 512, setvbuf(file, NULL, _IOFBF, 512), 0, -1);
    write_all(file, buffer, ten);
    say("fclose", 0, fclose(file), 0, -1);

    file = fdopen(open("a.data", O_RDONLY), "r");
    say("fdopen", 0, 0, 0, -1);
    setbuf(file, own);
    say("setvbuf", BUFSIZ, 0, 0, -1);
    read_all(file, buffer, ten);
    file = freopen(NULL, "r+", file);
    say("freopen", 0, 0, file ? 0 : errno, -1);
    say("fgetc", 1, get_unlocked(file) != EOF, 0, -1);
    say("fputc", 1, put_unlocked('y', file) != EOF, 0, -1);
    FILE *other = freopen("b.data", "w", file);
    fputs("other file\n", other);
    fclose(other);
    file = freopen("a.data", "a", stdout);
    say("freopen", 0, 0, 0, -1);
    setlinebuf(stdout);
    say("setvbuf", 0, 0, 0, -1);
    say("puts", 6, 6 * (puts("words") >= 0), 0, -1);
    say("fputc", 1, putchar('z') == 'z', 0, -1);
    int printed = printf("%zu of %s\n", ten, "them");
    say("fprintf", printed, printed, 0, -1);
    say("fclose", 0, fclose(stdout), 0, -1);

    file = freopen("a.data", "r", stdin);
    say("freopen", 0, 0, 0, -1);
    say("fgetc", 1, getchar() != EOF, 0, -1);
    say("fscanf", 0, 0 * scanf("%4095s", buffer), 0, -1);
    say("fclose", 0, fclose(stdin), 0, -1);

    file = fopen("missing/c.data", "r");
    int missing = errno;
    file = tmpfile();
    fputs("nameless", file);
    fflush(NULL);
    fclose(file);
    file = fmemopen(buffer, 100, "w");
    errno = 77;
    fputs("nowhere", file);
    fclose(file);
    return file && errno == 77 && missing == ENOENT ? 7 : 1;
}
