/* The model's own template: rendered turn after turn, with thinking and end tokens. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/text/chat_format.h"
#include "tests/lib/tiny_vocab.h"

#define F TINY_FIRST

/* Control tokens of the tokenizer.json; the first one has id F. */
#define C(n, text)  "{\"id\":" #n ",\"content\":\"" text "\",\"special\":true}"
#define SENTENCE(x) "<\uff5c" x "\uff5c>"

static const char llama_tokens[] = C(256, "<s>") "," C(257, "</s>");
static const char chatml_tokens[] =
    C(256, "<|im_start|>") "," C(257, "<|im_end|>") "," C(258, "<|endoftext|>");
static const char phi_tokens[] = C(256, "<|user|>") "," C(257, "<|end|>") "," C(
    258, "<|assistant|>") "," C(259, "<|system|>") "," C(260, "<|endoftext|>");
static const char deepseek_tokens[] = C(256, SENTENCE("begin\u2581of\u2581sentence")) "," C(
    257, SENTENCE("end\u2581of\u2581sentence")) "," C(258,
                                                      SENTENCE("User")) "," C(259,
                                                                              SENTENCE("Assista"
                                                                                       "nt"));
static const char gpt4_tokens[] = C(256, "<s>") "," C(257, "<|end_of_turn|>");

#define LLAMA_CONFIG "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"}"

/* OpenChat 3.5, without its tool branches. */
static const char openchat[] =
    "{{ bos_token }}{% for message in messages %}{{ 'GPT4 Correct ' + message['role'].title() "
    "+ "
    "': ' + message['content'] + '<|end_of_turn|>'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ 'GPT4 Correct Assistant:' }}{% endif %}";
/* Vicuna 1.5 as its users write it. */
static const char vicuna[] =
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}{{ 'USER: ' + "
    "m['content'] + ' ' }}{% elif m['role'] == 'assistant' %}{{ 'ASSISTANT: ' + m['content'] + "
    "eos_token }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ 'ASSISTANT:' }}"
    "{% endif %}";

/* The turns of gpt-oss, without its tool branches. */
static const char harmony[] =
    "{{ '<|start|>system<|message|>You are ChatGPT.\\nCurrent date: ' + "
    "strftime_now('%Y-%m-%d') + '\\n\\n# Valid channels: analysis, commentary, final.<|end|>' "
    "}}{% if messages[0].role == 'system' %}{{ '<|start|>developer<|message|># Instructions' + "
    "'\\n\\n' + messages[0].content + '<|end|>' }}{% set rest = messages[1:] %}{% else %}"
    "{% set rest = messages %}{% endif %}{% for m in rest %}{% if m.role == 'assistant' %}"
    "{{ '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|end|>' }}{% else %}"
    "{{ '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}";
static const char harmony_tokens[] =
    C(256, "<|start|>") "," C(257, "<|end|>") "," C(258, "<|message|>") "," C(
        259, "<|channel|>") "," C(260, "<|return|>") "," C(261, "<|call|>");

/* The turns of Muse, without its tools. */
static const char muse[] =
    "{{ bos_token }}{% for m in messages %}{{ '<|start|>' + m.role + (' to=user' if m.role == "
    "'assistant' else '') + '<|message|>' + m.content + '<|eot|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}";
static const char muse_tokens[] =
    C(256, "<|begin_of_text|>") "," C(257, "<|start|>") "," C(258, "<|message|>") "," C(
        259, "<|eom|>") "," C(260, "<|eot|>");

struct model {
    const char *name;     /* name of a file in tests/data/templates, or NULL */
    const char *template; /* the template itself, if there is no file */
    const char *added, *config;
    bool has_words; /* byte fallback and a space before each segment, as in Llama 2 */
    bool opens_thinking, can_switch;
    uint32_t end; /* printed by the template after an answer */
};

static const struct model models[] = {
    { .name = "llama2",
      .added = llama_tokens,
      .config = LLAMA_CONFIG,
      .has_words = true,
      .end = F + 1 },
    { .name = "mistral-v1-old",
      .added = llama_tokens,
      .config = LLAMA_CONFIG,
      .has_words = true,
      .end = F + 1 },
    { .name = "zephyr-tinyllama",
      .added = llama_tokens,
      .config = LLAMA_CONFIG,
      .has_words = true,
      .end = F + 1 },
    { .name = "zephyr-tinyllama", .added = llama_tokens, .config = LLAMA_CONFIG, .end = F + 1 },
    { .name = "qwen2-default-system",
      .added = chatml_tokens,
      .config = "{\"eos_token\":\"<|im_end|>\"}",
      .end = F + 1 },
    { .name = "phi4-mini",
      .added = phi_tokens,
      .config = "{\"eos_token\":\"<|endoftext|>\"}",
      .end = F + 1 },
    { .name = "deepseek-r1-distill",
      .added = deepseek_tokens,
      .config = "{\"bos_token\":\"" SENTENCE("begin\u2581of\u2581sentence") "\"}",
      .opens_thinking = true,
      .end = F + 1 },
    { .name = "qwen3.5",
      .added = chatml_tokens,
      .config = "{\"eos_token\":\"<|im_end|>\"}",
      .opens_thinking = true,
      .can_switch = true,
      .end = F + 1 },
    { .template = openchat,
      .added = gpt4_tokens,
      .config = "{\"bos_token\":\"<s>\"}",
      .has_words = true,
      .end = F + 1 },
    { .template = vicuna,
      .added = llama_tokens,
      .config = LLAMA_CONFIG,
      .has_words = true,
      .end = F + 1 },
};

#define N_MODEL (sizeof models / sizeof models[0])

/* ---- a vocabulary with its template ---- */

struct opened {
    struct catalogue *c;
    struct tokenizer *t;
    struct chat_choice *choice;
    const struct chat_format *f;
    char *text;
};

static char *read_template(const char *name)
{
    const char *dir = getenv("MW_SRCDIR");
    char path[4096], *text = calloc(1, 65536);
    FILE *f;

    snprintf(path, sizeof path, "%s/tests/data/templates/%s.jinja", dir != NULL ? dir : ".",
             name);
    f = fopen(path, "rb");
    if (f == NULL || text == NULL || fread(text, 1, 65535, f) == 0)
        fail_msg("cannot read %s", path);
    fclose(f);
    return text;
}

static void open_model(struct opened *x, const struct model *m)
{
    static const char words[] =
        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\u2581\"},"
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\u2581\"}]}";
    struct tiny tiny = { .byte_level = !m->has_words,
                         .added = m->added,
                         .config = m->config,
                         .normalizer = m->has_words ? words : NULL };
    struct err e = ERR_INIT;

    *x = (struct opened){ .text = m->name != NULL ? read_template(m->name) : NULL };
    tiny.template = x->text != NULL ? x->text : m->template;
    x->c = tiny_open(&tiny);
    if (tokenizer_open(&x->t, x->c, &e) != 0 ||
        chat_choose(&x->choice, x->c, x->t, NULL, &e) != 0)
        fail_msg("%s: %s", m->name != NULL ? m->name : "inline", e.what);
    x->f = chat_choice_format(x->choice);
}

static void close_model(struct opened *x)
{
    chat_choice_free(x->choice);
    tokenizer_close(x->t);
    tiny_close(x->c);
    free(x->text);
}

static struct chat_message say(enum chat_role role, const char *text)
{
    return (struct chat_message){ .role = role, .content = text, .len = strlen(text) };
}

static int render(const struct opened *x, const struct chat_message *m, size_t n,
                  const struct chat_options *o, struct ids *out, struct err *e)
{
    out->n = 0;
    *e = (struct err)ERR_INIT;
    return chat_format_render(x->f, x->t, m, n, o, out, e);
}

static void assert_same_ids(const struct ids *a, const struct ids *b, const char *what)
{
    if (a->n != b->n || (a->n > 0 && memcmp(a->id, b->id, a->n * sizeof *a->id) != 0))
        fail_msg("%s: %zu and %zu ids differ", what, a->n, b->n);
}

/* ---- turn after turn ---- */

/* The ids of an answer as a model gives them after a prompt: a text without a beginning. */
static void generate(const struct opened *x, const char *text, struct ids *out, char *shown)
{
    struct decoder d = { 0 };
    char piece[DECODE_MAX];
    struct err e = ERR_INIT;

    out->n = 0;
    shown[0] = '\0';
    assert_int_equal(tokenizer_encode_on(x->t, text, strlen(text), out, &e), 0);
    for (size_t i = 0; i < out->n; i++) {
        size_t n = decoder_push(&d, x->t, out->id[i], piece);

        strncat(shown, piece, n);
    }
}

static void assert_extends(const struct ids *longer, const struct ids *prompt,
                           const struct ids *answer, const char *what)
{
    if (longer->n <= prompt->n + answer->n ||
        memcmp(longer->id, prompt->id, prompt->n * sizeof *prompt->id) != 0)
        fail_msg("%s: the prompt is not the start of the next one", what);
    if (memcmp(longer->id + prompt->n, answer->id, answer->n * sizeof *answer->id) != 0)
        fail_msg("%s: the answer's ids are not in the next prompt", what);
}

static void each_prompt_extends_the_last_one(void **state)
{
    const struct chat_options o = { .add_generation_prompt = true };
    /* Answers as models give them: at once, after a space, with white space at the end. */
    static const char *const answers[] = { "Hello", " Hello there", "Hi \n", "\nyes", "a" };

    (void)state;
    for (size_t i = 0; i < N_MODEL; i++) {
        const char *what = models[i].name != NULL ? models[i].name : models[i].template;
        struct opened x;

        if (models[i].opens_thinking)
            continue;
        open_model(&x, &models[i]);
        for (size_t k = 0; k < 5; k++) {
            struct chat_message m[9] = { say(CHAT_USER, "a question") };
            struct ids prompt = { 0 }, next = { 0 }, said[4] = { { 0 } };
            char shown[4][64];
            struct err e;

            for (size_t turn = 0; turn < 4; turn++) {
                size_t n = 2 * turn + 1;

                assert_int_equal(render(&x, m, n, &o, &prompt, &e), 0);
                generate(&x, answers[(k + turn) % 5], &said[turn], shown[turn]);
                m[n] = say(CHAT_ASSISTANT, shown[turn]);
                m[n].ids = said[turn].id;
                m[n].n_ids = said[turn].n;
                m[n + 1] = say(CHAT_USER, "and  now?");
                assert_int_equal(render(&x, m, n + 2, &o, &next, &e), 0);
                assert_extends(&next, &prompt, &said[turn], what);
            }
            for (size_t turn = 0; turn < 4; turn++)
                ids_free(&said[turn]);
            ids_free(&prompt);
            ids_free(&next);
        }
        close_model(&x);
    }
}

/* If encoding the whole answer again gives its ids, keeping the ids changes nothing. */
static void kept_ids_are_those_of_the_text(void **state)
{
    const struct chat_options o = { .add_generation_prompt = true };

    (void)state;
    for (size_t i = 0; i < N_MODEL; i++) {
        struct chat_message m[3] = { say(CHAT_USER, "a"), { 0 }, say(CHAT_USER, "b") };
        struct ids said = { 0 }, kept = { 0 }, spelled = { 0 };
        char shown[64];
        struct opened x;
        struct err e;

        open_model(&x, &models[i]);
        /* After a SentencePiece prompt, the space before the word belongs to the answer. */
        generate(&x, models[i].has_words && models[i].template != NULL ? " Hello" : "Hello",
                 &said, shown);
        m[1] = say(CHAT_ASSISTANT, "Hello");
        if (strcmp(models[i].name != NULL ? models[i].name : "", "llama2") != 0) {
            assert_int_equal(render(&x, m, 3, &o, &spelled, &e), 0);
            m[1].ids = said.id;
            m[1].n_ids = said.n;
            if (models[i].template == openchat || models[i].template == vicuna)
                m[1].content = shown, m[1].len = strlen(shown);
            assert_int_equal(render(&x, m, 3, &o, &kept, &e), 0);
            assert_same_ids(&kept, &spelled,
                            models[i].name != NULL ? models[i].name : "inline");
        }
        ids_free(&said);
        ids_free(&kept);
        ids_free(&spelled);
        close_model(&x);
    }
}

/* ---- ends and thinking ---- */

static void the_token_after_an_answer_ends_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_MODEL; i++) {
        uint32_t stop[16];
        struct opened x;
        size_t n, k = 0;

        open_model(&x, &models[i]);
        n = chat_stop_ids(x.c, x.t, x.f, stop, 16);
        while (k < n && stop[k] != models[i].end)
            k++;
        if (k == n)
            fail_msg("%s: the token after an answer does not end one",
                     models[i].name != NULL ? models[i].name : models[i].template);
        close_model(&x);
    }
}

static void parse_said(const struct opened *x, const struct chat_options *o,
                       const struct ids *said, char *thought, char *answer)
{
    const struct chat_message m = say(CHAT_USER, "why?");
    struct answer_parser p = { .format = x->f, .tokenizer = x->t };
    struct ids prompt = { 0 };
    char buf[ANSWER_TEXT_MAX];
    bool is_thinking;
    struct err e;
    size_t n;

    thought[0] = answer[0] = '\0';
    assert_int_equal(render(x, &m, 1, o, &prompt, &e), 0);
    answer_parser_start(&p, prompt.id, prompt.n, false);
    for (size_t i = 0; i < said->n; i++) {
        n = answer_parser_push(&p, said->id[i], buf, &is_thinking);
        strncat(is_thinking ? thought : answer, buf, n);
    }
    n = answer_parser_end(&p, buf, &is_thinking);
    strncat(is_thinking ? thought : answer, buf, n);
    ids_free(&prompt);
}

static void parse_after(const struct opened *x, const struct chat_options *o, const char *text,
                        char *thought, char *answer)
{
    struct ids said = { 0 };
    struct err e;

    assert_int_equal(tokenizer_encode_on(x->t, text, strlen(text), &said, &e), 0);
    parse_said(x, o, &said, thought, answer);
    ids_free(&said);
}

static void encode_marks(const struct opened *x, const char *text, struct ids *out)
{
    struct err e;

    assert_int_equal(tokenizer_encode(x->t, text, strlen(text), true, false, out, &e), 0);
}

/* The same for a text with control tokens. */
static void parse_marks_after(const struct opened *x, const struct chat_options *o,
                              const char *text, char *thought, char *answer)
{
    struct ids said = { 0 };

    encode_marks(x, text, &said);
    parse_said(x, o, &said, thought, answer);
    ids_free(&said);
}

static void parse_ids(const struct opened *x, const struct ids *said, char *thought,
                      char *answer)
{
    struct answer_parser p = { .format = x->f, .tokenizer = x->t };
    char buf[ANSWER_TEXT_MAX];
    bool is_thinking;
    size_t n;

    thought[0] = answer[0] = '\0';
    for (size_t i = 0; i < said->n; i++) {
        n = answer_parser_push(&p, said->id[i], buf, &is_thinking);
        strncat(is_thinking ? thought : answer, buf, n);
    }
    n = answer_parser_end(&p, buf, &is_thinking);
    strncat(is_thinking ? thought : answer, buf, n);
}

static void only_the_final_channel_of_gpt_oss_is_the_answer(void **state)
{
    static const struct model gpt_oss = { .template = harmony,
                                          .added = harmony_tokens,
                                          .config = "{\"eos_token\":\"<|return|>\"}" };
    static const char said[] = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
                               "<|channel|>final<|message|>yes";
    static const char *const to_tool[][3] = {
        { " to=functions.f<|channel|>commentary json<|message|>{}", "{}", "" },
        { "<|channel|>analysis<|message|>hm<|end|><|start|>assistant to=functions.f<|channel|>"
          "commentary json<|message|>{}",
          "hm{}", "" },
        { "yes", "", "yes" },
        { " to", "", " to" },
        { " to be", "", " to be" },
        { " t<|channel|>final<|message|>yes", "", " tyes" },
    };
    const struct chat_options o = { .add_generation_prompt = true };
    struct chat_message m[] = { say(CHAT_USER, "why?"), say(CHAT_ASSISTANT, "yes"),
                                say(CHAT_USER, "why?") };
    struct ids want = { 0 }, got = { 0 }, generated = { 0 }, cut = { 0 };
    char thought[256], answer[256];
    uint32_t stop[16];
    struct opened x;
    struct err e;
    size_t n;

    (void)state;
    open_model(&x, &gpt_oss);
    encode_marks(&x, said, &generated);
    parse_ids(&x, &generated, thought, answer);
    assert_string_equal(thought, "hm");
    assert_string_equal(answer, "yes");
    /* Messages to tools are thinking, also if the header begins in the prompt. */
    for (size_t i = 0; i < sizeof to_tool / sizeof to_tool[0]; i++) {
        parse_marks_after(&x, &o, to_tool[i][0], thought, answer);
        assert_string_equal(thought, to_tool[i][1]);
        assert_string_equal(answer, to_tool[i][2]);
    }
    encode_marks(&x, "<|channel|>analysis", &cut);
    parse_ids(&x, &cut, thought, answer);
    assert_string_equal(thought, "");
    assert_string_equal(answer, "");

    /* The end of a message does not end an answer; the template prints it after one. */
    n = chat_stop_ids(x.c, x.t, x.f, stop, 16);
    for (size_t i = 0; i < n; i++)
        assert_int_not_equal(stop[i], F + 1);
    assert_int_equal(n, 2);

    /* The ids of an answer go into the next prompt without their marks and thinking. */
    assert_int_equal(render(&x, m, 3, &o, &want, &e), 0);
    m[1].ids = generated.id;
    m[1].n_ids = generated.n;
    assert_int_equal(render(&x, m, 3, &o, &got, &e), 0);
    assert_same_ids(&want, &got, "an answer of two messages");
    ids_free(&want);
    ids_free(&got);
    ids_free(&generated);
    ids_free(&cut);
    close_model(&x);
}

static void parse_muse(const struct opened *x, const char *said, const char *thought,
                       const char *answer)
{
    const struct chat_options o = { .add_generation_prompt = true };
    char got_thought[256], got_answer[256];

    parse_marks_after(x, &o, said, got_thought, got_answer);
    assert_string_equal(got_thought, thought);
    assert_string_equal(got_answer, answer);
}

static void messages_of_muse_to_itself_are_thinking(void **state)
{
    static const struct model model = {
        .template = muse,
        .added = muse_tokens,
        .config = "{\"bos_token\":\"<|begin_of_text|>\",\"eos_token\":\"<|eom|>\"}",
    };
    static const char said[] = " to=self<|message|>hm<|eom|><|start|>assistant to=user"
                               "<|message|>yes";
    const struct chat_options o = { .add_generation_prompt = true };
    struct chat_message m[] = { say(CHAT_USER, "why?"), say(CHAT_ASSISTANT, "yes"),
                                say(CHAT_USER, "why?") };
    struct chat_message again = say(CHAT_ASSISTANT, "yes");
    struct ids want = { 0 }, got = { 0 }, generated = { 0 };
    uint32_t stop[16];
    struct opened x;
    struct err e;
    size_t n;

    (void)state;
    open_model(&x, &model);
    parse_muse(&x, said, "hm", "yes");
    parse_muse(&x, " to=user<|message|>yes<|eot|>", "", "yes");
    parse_muse(&x, " to=self<|message|>h", "h", "");
    parse_muse(&x, " to=weather.today<|message|>{}<|eot|>", "", "{}");
    parse_muse(&x, "<|message|>yes", "", "yes");
    /* A model that forgets the header, and words that only begin like one. */
    parse_muse(&x, "yes, it is", "", "yes, it is");
    parse_muse(&x, " to be", "", " to be");

    /* The end of a message does not end an answer, whatever the file says. */
    n = chat_stop_ids(x.c, x.t, x.f, stop, 16);
    for (size_t i = 0; i < n; i++) {
        assert_int_not_equal(stop[i], 256 + 3);
        assert_int_not_equal(stop[i], 256 + 1);
    }
    assert_true(n > 0);

    encode_marks(&x, said, &generated);
    assert_int_equal(render(&x, m, 3, &o, &want, &e), 0);
    m[1].ids = generated.id;
    m[1].n_ids = generated.n;
    assert_int_equal(render(&x, m, 3, &o, &got, &e), 0);
    assert_same_ids(&want, &got, "an answer of two messages");

    /* The same answer, made again from its parts. */
    again.reasoning = "hm";
    again.reasoning_len = 2;
    got.n = 0;
    assert_int_equal(chat_answer_again(x.f, x.t, &again, false, &got, &e), 0);
    assert_same_ids(&generated, &got, "an answer from its parts");
    ids_free(&want);
    ids_free(&got);
    ids_free(&generated);
    close_model(&x);
}

static void a_prompt_that_opens_thinking_begins_the_answer_there(void **state)
{
    const struct chat_options on = { .add_generation_prompt = true };
    const struct chat_options off = { .add_generation_prompt = true, .think = CHAT_THINK_OFF };
    char thought[256], answer[256];
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < N_MODEL; i++) {
        struct opened x;

        open_model(&x, &models[i]);
        if (models[i].opens_thinking) {
            parse_after(&x, &on, "hm\n</think>\n\nyes", thought, answer);
            assert_string_equal(thought, "hm\n");
            assert_string_equal(answer, "yes");
            n++;
        } else {
            parse_after(&x, &on, "yes", thought, answer);
            assert_string_equal(thought, "");
            assert_string_equal(answer, "yes");
        }
        if (models[i].can_switch) {
            parse_after(&x, &off, "yes", thought, answer);
            assert_string_equal(thought, "");
            assert_string_equal(answer, "yes");
            n++;
        }
        close_model(&x);
    }
    assert_int_equal(n, 3); /* two of them open thinking, and one of these can switch it off */
}

/* ---- messages that a template refuses ---- */

static void questions_in_a_row_are_joined_where_roles_must_alternate(void **state)
{
    const struct chat_options o = { .add_generation_prompt = true };
    const struct chat_message apart[] = { say(CHAT_SYSTEM, "s"), say(CHAT_USER, "a"),
                                          say(CHAT_USER, "b") };
    const struct chat_message joined[] = { say(CHAT_SYSTEM, "s"), say(CHAT_USER, "a\n\nb") };
    struct ids one = { 0 }, two = { 0 };
    struct opened x;
    struct err e;

    (void)state;
    open_model(&x, &models[0]); /* Llama 2 */
    assert_int_equal(render(&x, apart, 3, &o, &one, &e), 0);
    assert_int_equal(render(&x, joined, 2, &o, &two, &e), 0);
    assert_same_ids(&one, &two, "joined");
    ids_free(&one);
    ids_free(&two);
    close_model(&x);
}

static void a_refusal_has_the_message_of_the_template(void **state)
{
    static const struct model m = {
        .template = "{% for m in messages %}{% if m.content == 'bad' %}{{ raise_exception('say "
                    "please') }}{% endif %}{{ m.content }}{% endfor %}",
        .added = llama_tokens,
        .config = LLAMA_CONFIG,
    };
    const struct chat_message bad = say(CHAT_USER, "bad"), good = say(CHAT_USER, "good");
    const struct chat_options o = { 0 };
    struct ids ids = { 0 };
    struct opened x;
    struct err e;

    (void)state;
    open_model(&x, &m);
    assert_int_equal(render(&x, &bad, 1, &o, &ids, &e), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
    assert_non_null(strstr(e.what, "say please"));
    assert_int_equal(ids.n, 0);
    assert_int_equal(render(&x, &good, 1, &o, &ids, &e), 0);
    assert_int_equal(ids.n, 4);
    ids_free(&ids);
    close_model(&x);
}

static void a_template_cannot_take_all_memory(void **state)
{
    static const struct model m = {
        .template = "{% if messages | length > 2 %}{% set ns = namespace(s='0123456789') %}"
                    "{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}"
                    "{% endif %}{{ messages[0].content }}",
        .added = llama_tokens,
        .config = LLAMA_CONFIG,
    };
    const struct chat_message ask[3] = { say(CHAT_USER, "a"), say(CHAT_ASSISTANT, "b"),
                                         say(CHAT_USER, "c") };
    const struct chat_options o = { 0 };
    struct ids ids = { 0 };
    struct opened x;
    struct err e;

    (void)state;
    open_model(&x, &m);
    assert_int_equal(chat_choice_source(x.choice), CHAT_EVALUATED);
    assert_int_equal(render(&x, ask, 3, &o, &ids, &e), -1);
    assert_int_equal(e.code, ERR_BUDGET);
    ids_free(&ids);
    close_model(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_prompt_extends_the_last_one),
        cmocka_unit_test(kept_ids_are_those_of_the_text),
        cmocka_unit_test(the_token_after_an_answer_ends_one),
        cmocka_unit_test(only_the_final_channel_of_gpt_oss_is_the_answer),
        cmocka_unit_test(messages_of_muse_to_itself_are_thinking),
        cmocka_unit_test(a_prompt_that_opens_thinking_begins_the_answer_there),
        cmocka_unit_test(questions_in_a_row_are_joined_where_roles_must_alternate),
        cmocka_unit_test(a_refusal_has_the_message_of_the_template),
        cmocka_unit_test(a_template_cannot_take_all_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
