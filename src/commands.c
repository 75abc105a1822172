/* The rows of command.h, in the order in which --help lists them. */
#include "config.h"

#include <string.h>

#include "src/command.h"

/* clang-format off */
const struct command command_table[] = {
    { "chat", "",
      "talk to a model in the terminal, with the dashboard beside it",
      "The screen is split: the chat, the dashboard, one line to type in, a status bar.\n"
      "/help or F1 lists commands and keys.  Without a terminal this is \"memwall run\".\n"
      "--once prints the dashboard as text and ends, --json its figures.",
      "memwall -m model.gguf\n"
      "memwall -m model.gguf --memory 2G --ctx 16k --kv q8_0\n"
      "memwall -m model.gguf --continue\n"
      "memwall -m model.gguf --memory 2G --once\n",
      CMD_CHAT, false, true, false, cmd_chat },
    { "run", "[PROMPT]",
      "answer one prompt on standard output",
      "The prompt is the argument, standard input, or both: then the input follows as\n"
      "attached text.  Only the answer goes to standard output.  On a terminal a line\n"
      "on standard error says how far it is.  Ctrl-C stops the answer, a second one\n"
      "ends.",
      "memwall run -m model.gguf \"Why is the sky blue?\"\n"
      "memwall run -m model.gguf \"Sum this up.\" < notes.txt\n"
      "git diff | memwall run -m model.gguf -q \"Write a commit message.\"\n",
      CMD_RUN, false, true, true, cmd_run },
    { "plan", "",
      "say what fits and how fast it would be, load nothing",
      "Print what each part would take of the memory budget, and how many tokens a\n"
      "second that would give on this machine.",
      "memwall plan model.gguf\n"
      "memwall plan model.gguf --memory 1G --ctx 32k\n",
      CMD_PLAN, false, true, false, cmd_plan },
    { "eval", "",
      "evaluate token ids or a text: logits, greedy ids, perplexity",
      "With --ids: write a row of logits for each id, print the ids that follow\n"
      "greedily.  With --text: print the perplexity of a text.",
      "echo 2 9259 | memwall eval model.gguf --ids - --greedy 8\n"
      "memwall eval model.gguf --ids ids.txt --logits out.f32 --exact --kv f32\n"
      "memwall eval model.gguf --text book.txt\n",
      CMD_EVAL, false, true, false, cmd_eval },
    { "replay", "FILE",
      "play a recording of --telemetry in the dashboard",
      "Space pauses, . steps to the next token or second, + and - change the speed,\n"
      "< and > seek, Up and Down inspect a layer, q leaves.  --once prints the\n"
      "dashboard as it was at the end, --json its figures.",
      "memwall run -m model.gguf --telemetry log.jsonl \"Hello\"\n"
      "memwall replay log.jsonl\n"
      "memwall replay --once log.jsonl\n",
      CMD_REPLAY, false, false, true, cmd_replay },
    { "inspect", "",
      "say what a model file consists of",
      "Parameters, weights by type, layers, lookup tables, tokenizer and chat format,\n"
      "from the headers of the file.",
      "memwall inspect model.gguf\n"
      "memwall inspect model.gguf --tensors\n",
      CMD_INSPECT, false, true, false, cmd_inspect },
    { "tokenize", "[FILE]",
      "text to token ids, or back with --decode",
      "Reads a file or standard input.  Prints each token on a line: its id, its kind\n"
      "unless it is a normal one, its text.  No begin token is added.  With --decode\n"
      "the input is ids separated by spaces, commas or newlines.  With --chat the\n"
      "input is a JSON array of messages, and the output is the prompt that the\n"
      "model's chat template makes of them.",
      "echo -n \"Why is the sky blue?\" | memwall tokenize -m model.gguf --ids\n"
      "memwall tokenize -m model.gguf --ids book.txt | wc -w\n"
      "echo 9259 236764 | memwall tokenize -m model.gguf --decode\n"
      "memwall tokenize -m model.gguf --chat --text chat.json\n"
      "memwall tokenize -m model.gguf --chat --template new.jinja --text chat.json\n",
      CMD_TOKENIZE, false, true, true, cmd_tokenize },
    { "completions", "bash|zsh|fish",
      "print what is generated from the table of options",
      "Print the completions of a shell.  For the tree itself: list prints all options one\n"
      "a line, options-COMMAND and examples-COMMAND what man pages have of them.",
      "source <(memwall completions bash)\n",
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
