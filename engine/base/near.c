#include "config.h"

#include "engine/base/near.h"

#include <string.h>

#define LONGEST 40
#define FAR     9

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* Count the letters to insert, remove, replace, or swap with their neighbour. */
static int distance(const char *a, size_t n, const char *b, size_t m)
{
    int d[LONGEST + 1][LONGEST + 1];

    if (n > LONGEST || m > LONGEST)
        return FAR;
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = (int)(i + j);
                continue;
            }
            d[i][j] = min(d[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
                          min(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

void near_try(struct near *n, const char *name)
{
    int most = n->len < 3 ? 0 : n->len < 6 ? 1 : 2, d;

    if (n->len == 0)
        return;
    d = strncmp(n->word, name, n->len) == 0 ? 0 : distance(n->word, n->len, name, strlen(name));
    if (d <= most && (n->name == NULL || d < n->distance)) {
        n->name = name;
        n->distance = d;
    }
}
