// Regions of C++: ended by the end of a block, also when an exception leaves it.
#include <ensio/ensio.h>
#include <stdexcept>
#include <unistd.h>

static void thrower(int fd)
{
    ensio::region here("throws");
    if (write(fd, "ab", 2) != 2)
        _exit(9);
    throw std::runtime_error("on purpose");
}

int main()
{
    ensio_phase("all of it");
    for (int i = 0; i < 3; i++) {
        ensio::region loop("loop");
        try {
            thrower(STDOUT_FILENO);
        } catch (const std::exception &) {
        }
    }
    return 3;
}
