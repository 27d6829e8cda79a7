#include "noise.h"

#define TERMS 18 /* terms of the exponential series */

/* The C library's exp differs between machines in the last bit; a simulation must be reproducible. */
static double exponential(double x)
{
    static const double ln2 = 0.693147180559945309417;
    int halvings = 0;
    int negative = x < 0;
    if (negative)
        x = -x;
    if (x > 700)
        x = 700;
    while (x > ln2) {
        x *= 0.5;
        halvings++;
    }
    /* The same quotients as x / i, to the last bit: halves are exact, and faster than divisions. */
    double quotient[TERMS + 1], term = 1, sum = 1;
#pragma GCC unroll 18
    for (int i = 1; i <= TERMS; i++) {
        /* cppcheck-suppress uninitvar ; the half of i was set before */
        quotient[i] = i % 2 ? x / i : quotient[i / 2] * 0.5;
        term *= quotient[i];
        if (term < 0x1p-54)
            break; /* further terms do not change the sum, which is at least 1 */
        sum += term;
    }
    while (halvings--)
        sum *= sum;
    return negative ? 1 / sum : sum;
}

/* The normal density, up to a constant factor. */
static double density(double z)
{
    return exponential(-0.5 * z * z);
}

/* Computes the quantiles of the normal distribution by integration. */
void noise_create(struct pfs *model)
{
    const double step = 1.0 / 4096, reach = 4;
    const int steps = (int)(2 * reach / step);
    double total = 0, sum = 0;
    for (int i = 0; i < steps; i++)
        total += density(-reach + (i + 0.5) * step);
    int next = 1;
    for (int i = 0; i < steps; i++) {
        double piece = density(-reach + (i + 0.5) * step);
        for (; next < PFS_QUANTILES && sum + piece >= total * next / PFS_QUANTILES; next++)
            model->quantile[next] = -reach + step * (i + (total * next / PFS_QUANTILES - sum) / piece);
        sum += piece;
    }
    model->quantile[0] = -reach;
    model->quantile[PFS_QUANTILES] = reach;
}

/* The finaliser of splitmix64: every bit of the argument affects every bit of the result. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t noise_bits(const struct pfs *model, enum noise_purpose purpose, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = mix(mix(model->seed ^ ((uint64_t)purpose << 56)) ^ a);
    return mix(x ^ (b << 24) ^ c);
}

double noise_uniform(const struct pfs *model, enum noise_purpose purpose, uint64_t a, uint64_t b, uint64_t c)
{
    return (double)(noise_bits(model, purpose, a, b, c) >> 11) * 0x1p-53;
}

double noise_factor(const struct pfs *model, double sigma, enum noise_purpose purpose, uint64_t a, uint64_t b,
                    uint64_t c)
{
    if (sigma <= 0)
        return 1;
    double place = noise_uniform(model, purpose, a, b, c) * PFS_QUANTILES;
    int below = (int)place;
    double z = model->quantile[below] + (place - below) * (model->quantile[below + 1] - model->quantile[below]);
    return exponential(sigma * (z - 0.5 * sigma));
}
