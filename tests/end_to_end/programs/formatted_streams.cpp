// Writes a file by C++ streams and reads it back; prints the sum of what it read.
#include <fstream>
#include <iostream>
#include <string>

int main(int, char **arguments)
{
    std::ofstream out(arguments[1]);
    for (int i = 0; i < 1000; i++)
        out << i << '\n';
    out.close();
    std::ifstream in(arguments[1]);
    long sum = 0;
    for (int number; in >> number;)
        sum += number;
    std::cout << sum << std::endl;
    return in.eof() ? 3 : 4;
}
