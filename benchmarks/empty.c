/* empty.c: a program that does nothing, to measure the cost of starting. */
int main(void)
{
    return 0;
}
