/* suggest.c: see suggest.h. Edit distance with neighbours swapped counting as one change. */
#include "cli/suggest.h"

#include <string.h>

enum { MAX_LETTER = 31, FAR = 1000 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int distance(const char *a, const char *b)
{
    int row[3][MAX_LETTER + 1];
    int n_a = (int)strlen(a), n_b = (int)strlen(b);
    if (n_a > MAX_LETTER || n_b > MAX_LETTER)
        return FAR;
    for (int j = 0; j <= n_b; j++)
        row[0][j] = j;
    for (int i = 1; i <= n_a; i++) {
        int *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= n_b; j++) {
            int changed = before[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = least(changed, least(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], earlier[j - 2] + 1);
        }
    }
    return row[n_a % 3][n_b];
}

static int closeness(const char *typed, const char *name)
{
    size_t n = strlen(typed);
    if (n >= 3 && !strncmp(typed, name, n))
        return 1;
    int d = distance(typed, name), limit = (int)strlen(name) / 3;
    return d <= (limit < 2 ? 2 : limit) && d < (int)strlen(name) ? d : FAR;
}

const char *suggest_closer(const char *typed, const char *best, const char *name)
{
    int d = closeness(typed, name);
    return d < FAR && (!best || d < closeness(typed, best)) ? name : best;
}
