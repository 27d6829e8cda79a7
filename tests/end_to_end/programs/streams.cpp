// Writes and reads a million bytes by streams, in ten blocks each.
#include <fstream>
#include <vector>
int main(int, char **argv)
{
    std::vector<char> block(100000, 'x');
    {
        std::ofstream out(argv[1], std::ios::binary);
        for (int i = 0; i < 10; i++)
            out.write(block.data(), block.size());
    }
    std::ifstream in(argv[1], std::ios::binary);
    long sum = 0;
    while (in.read(block.data(), block.size()))
        sum += in.gcount();
    return sum == 1000000 ? 0 : 1;
}
