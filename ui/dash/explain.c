#include "config.h"

#include "ui/dash/explain.h"

#include <stddef.h>

/* Rows without words for questions end before them. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* clang-format off */
static const struct dash_note notes[] = {
    { "marks", "~", "an estimate: it was predicted, not measured" },
    { "marks", "-", "not measured" },
    { "marks", "?", "doubtful: other programs were busy while the machine was measured" },
    { "marks", "colours", "of the theme, see /theme; each part of a bar also has its letter",
      .asks = "colour colors color yellow red green blue orange grey gray part bar" },

    { "verdict", "...-bound", "what limits the speed, and its share of a token's time" },
    { "verdict", "F10", "the key that runs the advised command; you confirm it" },
    { "verdict", "disk", "a token waits for weights that are not in memory" },
    { "verdict", "RAM-bandwidth", "weights come from memory as fast as it can deliver them",
      .asks = "ram-bandwidth-bound bandwidth-bound memory-bound" },
    { "verdict", "compute", "arithmetic takes longer than reading" },
    { "verdict", "context", "keys and values of the context take most of the time",
      .asks = "kv-bound" },
    { "verdict", "others", "the program waits for a processor that others use" },
    { "verdict", "swapping", "the system is out of memory: use a smaller budget",
      .asks = "swap" },
    { "verdict", "fast", "more than 100 tokens per second: nothing is worth a change" },
    { "verdict", "the bar", "the time of a token, averaged over the newest 16, and its parts" },
    { "verdict", "d disk wait", "waiting for weights from the disk" },
    { "verdict", "m memory", "reading weights from memory, at the rate that memory reaches" },
    { "verdict", "a arithmetic", "the other work on weights: multiplying, unpacking" },
    { "verdict", "k context", "reading the keys and values of the context, and using them" },
    { "verdict", "o others", "waiting for a processor that other programs use" },
    { "verdict", "f fixed", "choosing the token, and its text: the same at every budget" },

    { "speed", "tok/s", "tokens per second of the newest 16; receipts have all tokens" },
    { "speed", "now, last", "the newest tokens, while they are made and after it" },
    { "speed", "next", "the next answer, predicted: nothing was measured yet" },
    { "speed", "mean", "all tokens of the answer" },
    { "speed", "~", "a prediction of the plan, until there is a measurement" },
    { "speed", "prompt", "tokens of a prompt evaluated per second" },
    { "speed", "first token", "time from Enter to the first token of the answer" },
    { "speed", "answer", "tokens of this answer; with a limit (-n), the time left" },
    { "speed", "drafts", "tokens that came with one pass, and the share of drafts accepted" },
    { "speed", "disk", "bytes read per second, of the most that was measured" },
    { "speed", "overlap", "share of reading that went on while the CPU computed" },
    { "speed", "waiting %", "share of a token in which the CPU waited for the disk" },
    { "speed", "wait", "the same of the newest tokens; receipts have the answer's" },
    { "speed", "cpu", "use of all CPUs (100 % is one); a cell for each thread" },
    { "speed", "io", "how weights are read, if not as usual, and why: memwall-plan(1)" },

    { "wall", "the line", "predicted tokens per second, by budget or context" },
    { "wall", "diamond, @", "the settings in use: measured, or predicted with ~" },
    { "wall", "circle, o", "measured with another budget; /tried lists all" },
    { "wall", "dot, .", "measured, but with other settings beside, too" },
    { "wall", "cross, x", "the cursor: Left, Right move it, Enter proposes it" },
    { "wall", "w, c", "keys: go to the wall; context in place of the budget" },
    { "wall", "+40 %", "the gain against the settings in use" },
    { "wall", "was", "the rate that was measured there" },
    { "wall", "full", "the rate when that context is full" },
    { "wall", "KV", "the keys and values of that context" },
    { "wall", "nothing is read", "from this budget on, no weights for each token" },

    { "memory", "the bar", "the budget; each part begins with its letter" },
    { "memory", "p program", "the program and its libraries" },
    { "memory", "t tokenizer", "the vocabulary" },
    { "memory", "a activations", "results of a layer that the next one needs" },
    { "memory", "g token scores", "one score for each token of the vocabulary",
      .asks = "logits" },
    { "memory", "e table rows", "rows of lookup tables for the next tokens" },
    { "memory", "r read buffers", "weights that were read and wait to be used",
      .asks = "ring" },
    { "memory", "m experts", "experts that are kept in memory" },
    { "memory", "w pinned weights", "weights that stay in memory; the others are read again" },
    { "memory", "saved", "pinned BF16 weights are packed; without it they take more" },
    { "memory", "k full KV", "keys and values of layers that see all tokens" },
    { "memory", "s sliding KV", "those of layers that see only the last tokens, and copies" },
    { "memory", "n recurrent KV", "states of recurrent layers, and copies" },
    { "memory", "i index keys", "keys by which a token chooses the positions that it reads" },
    { "memory", "x kernel", "memory that the kernel needs for this process" },
    { "memory", "b borrowed", "KV space with pinned weights in it until the context fills" },
    { "memory", "c cached", "pages of the model in the page cache" },
    { "memory", "reserved", "planned, not used yet: context, loading, the program's own files" },
    { "memory", "o other", "charged memory of unknown origin" },
    { "memory", "own", "memory of this program: charged, or else resident" },
    { "memory", "charged, peak", "the kernel's count for the control group, now and at most" },
    { "memory", "rss", "resident memory of the process" },
    { "memory", "rss anon", "the same without files, with --io mmap" },
    { "memory", "swap own", "memory of this program that was swapped out" },
    { "memory", "available", "memory that programs can still get on this machine" },
    { "memory", "limit", "the smallest limit of the control group and those above it" },
    { "memory", "loading", "a model that is loaded takes more memory, and gives it back" },
    { "memory", "the curve", "memory in each second, below the line of the budget" },
    { "memory", "pressure", "share of time in which the system waited for memory" },

    { "kv cache", "tokens", "tokens in the context, of the most it holds" },
    { "kv cache", "the bar", "the part of the context that the conversation fills" },
    { "kv cache", "size", "bytes in use, of those of a full context" },
    { "kv cache", "full, sliding KV", "bytes for layers that see all tokens, or only the last" },
    { "kv cache", "a token", "bytes that each further token takes" },
    { "kv cache", "full in", "tokens until the context is full" },
    { "kv cache", "then", "the speed with a full context, predicted" },
    { "kv cache", "budget in", "tokens until the budget is used up, if that is sooner" },
    { "kv cache", "to evaluate", "tokens that the next message evaluates again" },
    { "kv cache", "the line", "how the cache will grow, up to what stops it" },

    { "page cache", "of", "how much of the model the kernel keeps; direct reads: none",
      .asks = "page cache" },
    { "page cache", "system", "the page cache of all programs" },
    { "page cache", "faults/tok", "waits for a page per token, with --io mmap" },
    { "page cache", "refaults", "pages that were dropped and read again" },

    { "layers", "s, G", "a sliding layer (sees the last tokens), a global one (all)" },
    { "layers", "(s), (G)", "such a layer that shares the keys and values of another one",
      .asks = "brackets parentheses" },
    { "layers", "r, I", "a recurrent layer (keeps a state), one that reads chosen positions",
      .asks = "indexed" },
    { "layers", "circle", "full: weights in memory; half: some; empty: all on disk" },
    { "layers", "read", "milliseconds in which weights were read" },
    { "layers", "wait", "milliseconds in which the CPU waited for them (a stall)" },
    { "layers", "compute", "milliseconds of arithmetic" },
    { "layers", "the waterfall", "waits of 1, 4, 16 and 64 ms or more, a column for each token" },
    { "layers", "\u25bc, v", "the column of the newest token, in the line above" },
    { "layers", ">, !", "runs now; was the slowest" },
    { "layers", "head", "the output head, which makes scores from the last layer" },

    { "experts", "hits", "share of the experts chosen lately that were in memory" },
    { "experts", "in memory", "experts in memory, of those of all layers" },
    { "experts", "read/tok", "bytes of experts that a token reads from disk" },
    { "experts", "the map", "a row per layer, a column per expert or for a few" },
    { "experts", "glyphs", "the denser, the more of them are in memory" },
    { "experts", "colours", "the warmer, the more tokens chose them lately" },
    { NULL, NULL, NULL },
};
/* clang-format on */
#pragma GCC diagnostic pop

const struct dash_note *dash_notes(void)
{
    return notes;
}
