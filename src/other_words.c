#include "config.h"

#include "src/other_words.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *words; /* separated by blanks */
    const char *command, *answer;
} rows[] = {
    { "ls models tags", "list", NULL },
    { "download get fetch install", "pull", NULL },
    { "show info", "inspect", NULL },
    { "ask generate complete prompt", "run", NULL },
    { "benchmark perf llama-bench", "bench", NULL },
    { "check diagnose", "doctor", NULL },
    { "estimate fit", "plan", NULL },
    { "cli repl interactive", "chat", NULL },
    { "server start api daemon", "serve", NULL },
    { "ps stop unload", NULL,
      "memwall keeps no model in memory after its command has ended, so there is nothing to "
      "list "
      "or stop" },
    { "rm remove delete", NULL,
      "memwall deletes no models; \"memwall inspect NAME\" shows the file of one, to be "
      "removed" },
    { "cp create push quantize convert import", NULL,
      "memwall makes no models: it runs the files of other programs as they are" },
    { "update upgrade self-update", NULL,
      "memwall does not update itself; \"memwall --version\" shows what is installed" },
};

#define N_ROW (sizeof rows / sizeof rows[0])

/* Is word one of words? */
static bool has(const char *words, const char *word)
{
    while (*words != '\0') {
        size_t n = strcspn(words, " ");

        if (strlen(word) == n && strncmp(words, word, n) == 0)
            return true;
        words += n + strspn(words + n, " ");
    }
    return false;
}

const char *other_words_command(const char *word)
{
    for (size_t i = 0; i < N_ROW; i++)
        if (has(rows[i].words, word))
            return rows[i].command;
    return NULL;
}

const char *other_words_answer(const char *word)
{
    for (size_t i = 0; i < N_ROW; i++)
        if (has(rows[i].words, word))
            return rows[i].answer;
    return NULL;
}
