/* The rows of command.h, in the order in which --help lists them. */
#include "config.h"

#include <string.h>

#include "src/command.h"

/* clang-format off */
const struct command command_table[] = {
    { "chat", "",
      "talk to a model in the terminal, with the dashboard beside it",
      "The screen is split: the chat, the dashboard, one line to type in, a status bar.\n"
      "/help or F1 lists commands and keys.  Without a terminal this is \"memwall run\".",
      CMD_CHAT, false, true, false, cmd_chat },
    { "run", "[PROMPT]",
      "answer one prompt on standard output",
      "The prompt is the argument, standard input, or both: then the input follows as\n"
      "attached text.  Only the answer goes to standard output.  On a terminal a line on\n"
      "standard error says how far it is.  Ctrl-C stops the answer, a second one ends.",
      CMD_RUN, false, true, true, cmd_run },
    { "plan", "",
      "say what fits and how fast it would be, load nothing",
      "Print what each part would take of the memory budget.",
      CMD_PLAN, false, true, false, cmd_plan },
    { "eval", "",
      "evaluate token ids or a text: logits, greedy ids, perplexity",
      "With --ids: write a row of logits for each id, print the ids that follow greedily.\n"
      "With --text: print the perplexity of a text.",
      CMD_EVAL, false, true, false, cmd_eval },
    { "replay", "FILE",
      "play a recording of --telemetry in the dashboard",
      "Space pauses, . steps to the next token or second, + and - change the speed, < and >\n"
      "seek, Up and Down inspect a layer, q leaves.  --once prints the dashboard as it was at\n"
      "the end, --json its figures.",
      CMD_REPLAY, false, false, true, cmd_replay },
    { "inspect", "",
      "say what a model file consists of",
      "Parameters, weights by type, layers, lookup tables, tokenizer and chat format, from\n"
      "the headers of the file.",
      CMD_INSPECT, false, true, false, cmd_inspect },
    { "tokenize", "[FILE]",
      "text to token ids, or back with --decode",
      "Reads a file or standard input.  Prints each token on a line: its id, its kind unless\n"
      "it is a normal one, its text.  No begin token is added.  With --decode the input is\n"
      "ids separated by spaces, commas or newlines.",
      CMD_TOKENIZE, false, true, true, cmd_tokenize },
    { "completions", "bash|zsh|fish|man-COMMAND|list",
      "print what is generated from the table of options",
      "Print the shell completions, the list of a subcommand's options for its man page,\n"
      "or all options one a line.",
      CMD_COMPLETIONS, true, false, true, cmd_completions },
};
/* clang-format on */
const size_t n_command = sizeof command_table / sizeof command_table[0];

const struct command *command_named(const char *name)
{
    for (size_t i = 0; i < n_command; i++)
        if (strcmp(command_table[i].name, name) == 0)
            return &command_table[i];
    return NULL;
}
