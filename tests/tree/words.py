"""Words that the tree does not use, and what to write instead.

The first texts of this program inverted sentences and left out words; a reader needed three
passes where one should do.  The table keeps the worst of these idioms from coming back.  It
cannot check good English, only known bad phrases, so every pattern must be precise enough
that a match is always wrong.
"""
import ast
import io
import re
import tokenize

# These files, and these folders with all that is below them.
TOPS = ["README.md", "Makefile.am", "configure.ac", "bootstrap", "engine", "man", "share", "src",
        "tests", "ui"]
TYPES = (".c", ".h", ".md", ".1", ".5", ".py", ".sh", ".mk")

COMMENT, STRING, PAGE = "comment", "string", "page"
ALL = (COMMENT, STRING, PAGE)
PROSE = (COMMENT, PAGE)

# (pattern, a hint, where it is checked, a text it must find).  A space in a pattern also matches
# a line break.  Upper and lower case are the same except inside (?-i:...).  A name of a test is
# checked like a comment.
WORDS = [
    # the items of the memory plan have one name each
    (r"\bkv (global|sliding)\b", "full KV, sliding KV", (STRING, PAGE), "kv global 1.50 MiB"),
    (r"\bring of reads\b", "read buffers", (STRING, PAGE), "r ring of reads"),
    (r"\bring buffers?\b", "read buffers", (STRING, PAGE), "a ring buffer"),
    # a clause used as a noun
    (r"^(?-i:What|Who|Which|Whose)\b[^?]*$", 'start with the subject: "Blocks that are ...", '
     '"Returns the ..."', (COMMENT,), "What is not kept is read again."),
    (r"[.;] (what|who|whose) [^?.]*\.", "start the sentence with its subject", PROSE,
     "Read it. What is left stays."),
    (r"^(?-i:Of) (?!course)", "start with the subject", (COMMENT,), "Of reads in flight it keeps four."),
    (r"\bwhat (is|are|was|were) (not )?(kept|held|pinned)\b", "name it: pinned weights, KV "
     "entries, cached rows", ALL, "each token reads what is not kept"),
    (r"\bwho(so)?ever\b", "name the caller: the reader, the program, the user", ALL,
     "set by whoever waits"),
    (r"\b(to|of|by|from|for) who (?!m)", "the caller, the process that ...", ALL,
     "freed by who asked"),
    (r"; who\b", "start a sentence with its subject", PROSE, "no limit; who measures keeps it"),
    (r"^(\.\.\.|…) ?\w", "start a comment with its subject", (COMMENT,), "... and its end"),
    # verbs
    (r"\b(stands|lies)\b(?! for\b)", "is", ALL, "the cursor stands at the end"),
    (r"\b(stand|lie|stood) (in|at|on|there|beside|behind|before|above|below|between|side)\b",
     "is, are, was", ALL, "rows lie in two pages"),
    (r"\b(told|tells)\b(?!( \w+){0,4} apart)", "reports, returns, shows, prints", ALL,
     "which is told by the header"),
    (r"\b(is|are|was|were) wanted\b", "expected, requested", ALL, "%u are wanted"),
    (r"\bmeant\?", "did you mean ...?", ALL, 'is "--memory" meant?'),
    (r"\b(is|are) meant[.,;]", "is implied, is the default", ALL, "--once is meant."),
    (r"\bbe had\b", "is available, can be opened", ALL, "neither is to be had"),
    (r"\bit is said\b", "is reported, a notice names", ALL, "it is said which"),
    (r"(?<!there )\b(is|are|was|were) no (?!longer\b|more\b|less\b|other\b|different\b|such\b|\w+er\b)\w",
     "is not a", ALL, "what is no model"),
    (r"\bmend(s|ed|ing)?\b", "repair, fix", ALL, "the line is mended"),
    (r"\bl(ent|ends|ending)\b", "borrowed KV space", ALL, "memory lent to weights"),
    (r"\b(has|have|had|without) (no )?room\b", "fits, does not fit", ALL,
     "if the page has room"),
    # small words
    (r"(?<!left )(?<!leave )(?<!leaves )(?<!fall )(?<!falls )\bbehind\b", "after", ALL,
     "the byte behind the quote"),
    (r"\banew\b", "again, recreate", ALL, "made anew"),
    (r"\bany more\b(?! than)", "no longer", ALL, "not saved any more"),
    (r"\bone an? (argument|core|file|id|item|layer|line|module|page|process|row|slot|test|"
     r"thread|token|user|vector|word)\b", "one per", ALL, "threads (default: one a core)"),
    (r"\bfor ever\b", "forever, in a loop", ALL, "in the same order for ever"),
    (r"\bbeforehand\b", "before ..., in advance", ALL, "plan says it beforehand"),
    (r"\bthe former\b", "name them again", ALL, "one of the former"),
    (r"\btill\b", "until", ALL, "till the end"),
    (r"\bthat which\b|\bthose which\b", "the ... that", ALL, "that which follows"),
    # messages
    (r"\bargument too many\b", "unexpected argument", (STRING,), '"x" is one argument too many'),
    (r"\bneither yes nor no\b", "is not a boolean (yes or no)", (STRING,), "is neither yes nor no"),
    (r"\bmost tokens of\b", "maximum tokens per", ALL, "most tokens of an answer"),
]
RULES = [(re.compile(pattern, re.I), instead, where) for pattern, instead, where, _ in WORDS]

SPAN = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*'
                  r"|'(?:\\.|[^'\\\n])*'|/\*.*?\*/|//[^\n]*", re.S)
FENCE = re.compile(r"^```.*?^```|^\.EX$.*?^\.EE$", re.S | re.M)
HASHES = re.compile(r"^[ \t]*#(?!!).*(?:\n[ \t]*#.*)*", re.M)
TEST = re.compile(r"^static void (\w+)\(void \*\*state\)$|^ *def test_(\w+)\(", re.M)


def names(text):
    """The names of tests as sentences."""
    for m in TEST.finditer(text):
        at = 1 if m.group(1) else 2
        sentence = m.group(at).replace("_", " ")
        yield COMMENT, m.start(at), sentence[0].upper() + sentence[1:]


def c_spans(text):
    for m in SPAN.finditer(text):
        begin = text.rfind("\n", 0, m.start()) + 1
        is_include = text[begin:m.start()].lstrip().startswith("#")
        if m.group(0)[0] == "/":
            yield COMMENT, m.start(), m.group(0)
        elif m.group(0)[0] == '"' and not is_include:
            yield STRING, m.start(), m.group(0)


def python_spans(text):
    """Docstrings and comments."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and \
                ast.get_docstring(node) is not None:
            begin = starts[node.body[0].lineno - 1]
            yield COMMENT, begin, text[begin:starts[node.body[0].end_lineno]].replace('"""', "   ")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        begin = starts[token.start[0] - 1]
        if token.type == tokenize.COMMENT and text[begin:begin + token.start[1]].strip():
            yield COMMENT, begin + token.start[1], token.string


def spans(path, text):
    """Yields (where, offset, text) of everything in a file that a person reads."""
    if path.endswith((".c", ".h")):
        yield from c_spans(text)
    elif path.endswith((".md", ".1", ".5")):
        yield PAGE, 0, FENCE.sub(lambda m: re.sub(r"\S", " ", m.group(0)), text)
    else:
        if path.endswith(".py"):
            yield from python_spans(text)
        for m in HASHES.finditer(text):
            yield COMMENT, m.start(), m.group(0)
    yield from names(text)


def flow(text, where):
    """Returns the words of a text, joined by spaces, and the offset of each word."""
    words = [(m.group(0), m.start()) for m in re.finditer(r"\S+", text)]
    if where == COMMENT:
        words = [w for w in words if w[0] not in ("/*", "*", "*/", "//", "/**", "#")]
    line, at = "", []
    for word, offset in words:
        at.append((len(line), offset))
        line += word + " "
    return line.rstrip(), at


def found(path, text):
    """Yields (line, words found, hint) for each match in the text of a file."""
    for where, offset, span in spans(path, text):
        if where == STRING:
            span = re.sub(r'"\s*"', lambda m: " " * len(m.group(0)), span[1:])
        line, at = flow(span, where)
        for rule, instead, places in RULES:
            if where not in places:
                continue
            for m in rule.finditer(line):
                start = max(o for s, o in at if s <= m.start())
                yield (text.count("\n", 0, offset + start) + 1, m.group(0)[:40], instead)
