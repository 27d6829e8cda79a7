// Writes through a stream, whose library calls the system: the sites are those of the program.
#include <fstream>
#include <string>

__attribute__((noinline)) static void dump(std::ofstream &out, char letter)
{
    out << std::string(100000, letter); // site text: 2 writev
    out << 5;
    out.flush(); // site flush: 2 write
    asm volatile(""); // no jump in place of the call
}

int main(int, char **arguments)
{
    std::ofstream out(std::string(arguments[1]) + "/data"); // site open: 1 fopen
    dump(out, 'a');
    dump(out, 'b');
    out.close(); // site close: 1 fclose
}
