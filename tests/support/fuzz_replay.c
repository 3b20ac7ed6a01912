/* fuzz_replay.c: runs a fuzzer's function on every file of the folders (or files) given, once each: the corpus as a
 * plain test, for compilers without libFuzzer. The empty input is always tried. */
#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_byte);

static int replay_file(const char *path)
{
    struct file_map m;
    struct err e = {0};
    if (file_map_open(&m, path, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return -1;
    }
    LLVMFuzzerTestOneInput(m.data ? m.data : (const uint8_t *)"", (size_t)m.n_byte);
    file_map_close(&m);
    return 0;
}

/* A folder that does not exist holds no seeds. */
static int replay_folder(const char *path, int *n_run)
{
    DIR *folder = opendir(path);
    if (!folder)
        return 0;
    int failed = 0;
    for (struct dirent *entry; !failed && (entry = readdir(folder));) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.') {
            failed = replay_file(file);
            ++*n_run;
        }
    }
    closedir(folder);
    return failed;
}

int main(int n_argument, char **arguments)
{
    int n_run = 1, failed = 0;
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < n_argument && !failed; i++) {
        failed = file_is_directory(arguments[i]) || !file_exists(arguments[i])
                     ? replay_folder(arguments[i], &n_run)
                     : (n_run++, replay_file(arguments[i]));
    }
    printf("%d inputs\n", n_run);
    return failed ? 1 : 0;
}
