/* empty.c: a program that does nothing; what it costs to run it is what starting costs. */
int main(void)
{
    return 0;
}
