#include "config.h"

#include "tests/lib/talker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WIDTH   64
#define HEADS   2
#define ALIGN   32
#define N_BYTE  256
#define F_NORM  0 /* GGUF: type F32 */
#define F_BF16  30
#define MAX_TOK 16384

enum { ID_UNKNOWN, ID_BEGIN, ID_END, ID_OPEN, ID_CLOSE, ID_SPACE, ID_BYTES };
enum { ID_TEXT = ID_BYTES + N_BYTE };

/* The pieces of the text: text[at[i] .. at[i + 1]). */
struct pieces {
    const char *text;
    size_t at[MAX_TOK + 1];
    uint32_t n;
};

/* ---- cut the text into pieces that differ ---- */

static size_t piece_len(const struct pieces *p, uint32_t i)
{
    return p->at[i + 1] - p->at[i];
}

static bool is_known(const struct pieces *p, const char *s, size_t n)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (piece_len(p, i) == n && memcmp(p->text + p->at[i], s, n) == 0)
            return true;
    return false;
}

/* Take a word and the blanks after it.  If the piece already exists, add more words. */
static int cut(struct pieces *p, const char *text)
{
    size_t at = 0;

    p->text = text;
    p->n = 0;
    p->at[0] = 0;
    while (text[at] != '\0') {
        size_t n = 0;

        do {
            n += strcspn(text + at + n, " \n");
            n += strspn(text + at + n, " \n");
        } while (text[at + n] != '\0' && is_known(p, text + at, n));
        if (p->n == MAX_TOK || is_known(p, text + at, n)) {
            fprintf(stderr, "talker: the text cannot be cut into different pieces\n");
            return -1;
        }
        at += n;
        p->at[++p->n] = at;
    }
    return 0;
}

/* ---- the bytes of the file ---- */

static void put_u32(FILE *f, uint32_t v)
{
    fwrite(&v, sizeof v, 1, f);
}

static void put_u64(FILE *f, uint64_t v)
{
    fwrite(&v, sizeof v, 1, f);
}

static void put_bytes(FILE *f, const char *s, size_t n)
{
    put_u64(f, n);
    fwrite(s, 1, n, f);
}

static void put_string(FILE *f, const char *s)
{
    put_bytes(f, s, strlen(s));
}

enum { T_U32 = 4, T_I32 = 5, T_F32 = 6, T_BOOL = 7, T_STRING = 8, T_ARRAY = 9 };

static void key_u32(FILE *f, const char *key, uint32_t v)
{
    put_string(f, key);
    put_u32(f, T_U32);
    put_u32(f, v);
}

static void key_f32(FILE *f, const char *key, float v)
{
    put_string(f, key);
    put_u32(f, T_F32);
    fwrite(&v, sizeof v, 1, f);
}

static void key_bool(FILE *f, const char *key, bool v)
{
    put_string(f, key);
    put_u32(f, T_BOOL);
    fputc(v, f);
}

static void key_string(FILE *f, const char *key, const char *v)
{
    put_string(f, key);
    put_u32(f, T_STRING);
    put_string(f, v);
}

static void key_array(FILE *f, const char *key, uint32_t type, uint64_t n)
{
    put_string(f, key);
    put_u32(f, T_ARRAY);
    put_u32(f, type);
    put_u64(f, n);
}

static void put_vocabulary(FILE *f, const struct pieces *p)
{
    static const char *const special[] = { "<unk>",        "<s>",        "</s>",
                                           "<|im_start|>", "<|im_end|>", "\xe2\x96\x81" };
    uint32_t n = ID_TEXT + p->n;

    key_array(f, "tokenizer.ggml.tokens", T_STRING, n);
    for (int i = 0; i < ID_BYTES; i++)
        put_string(f, special[i]);
    for (int i = 0; i < N_BYTE; i++) {
        char name[8];

        snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
        put_string(f, name);
    }
    for (uint32_t i = 0; i < p->n; i++)
        put_bytes(f, p->text + p->at[i], piece_len(p, i));
    key_array(f, "tokenizer.ggml.scores", T_F32, n);
    for (uint32_t i = 0; i < n; i++)
        put_u32(f, 0);
    key_array(f, "tokenizer.ggml.token_type", T_I32, n);
    for (uint32_t i = 0; i < n; i++)
        put_u32(f, i == ID_UNKNOWN ? 2
                   : i < ID_SPACE  ? 3
                   : i == ID_SPACE ? 1
                   : i < ID_TEXT   ? 6
                                   : 4);
}

/* ---- tensors ---- */

struct tensor {
    char name[48];
    uint64_t dim[2];
    uint32_t type;
    uint64_t offset;
};

struct model {
    const struct talker *t;
    struct pieces pieces;
    struct tensor *tensor;
    uint64_t n_tensor;
    uint64_t end; /* of the data written so far */
};

static void add(struct model *m, const char *name, uint64_t width, uint64_t rows)
{
    struct tensor *x = &m->tensor[m->n_tensor++];

    snprintf(x->name, sizeof x->name, "%s.weight", name);
    x->dim[0] = width;
    x->dim[1] = rows;
    x->type = rows == 0 ? F_NORM : F_BF16;
    x->offset = m->end;
    m->end += rows == 0 ? width * 4 : width * rows * 2;
    m->end = (m->end + ALIGN - 1) / ALIGN * ALIGN;
}

static void add_all(struct model *m)
{
    uint32_t n_vocab = ID_TEXT + m->pieces.n;

    add(m, "token_embd", WIDTH, n_vocab);
    add(m, "output_norm", WIDTH, 0);
    add(m, "output", WIDTH, n_vocab);
    for (uint32_t i = 0; i < m->t->n_layer; i++) {
        static const char *const square[] = { "attn_q", "attn_k", "attn_v", "attn_output" };
        char name[40];

        for (int k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "blk.%u.%s", i, square[k]);
            add(m, name, WIDTH, WIDTH);
        }
        snprintf(name, sizeof name, "blk.%u.attn_norm", i);
        add(m, name, WIDTH, 0);
        snprintf(name, sizeof name, "blk.%u.ffn_norm", i);
        add(m, name, WIDTH, 0);
        snprintf(name, sizeof name, "blk.%u.ffn_gate", i);
        add(m, name, WIDTH, m->t->n_ff);
        snprintf(name, sizeof name, "blk.%u.ffn_up", i);
        add(m, name, WIDTH, m->t->n_ff);
        snprintf(name, sizeof name, "blk.%u.ffn_down", i);
        add(m, name, m->t->n_ff, WIDTH);
    }
}

/* Element i of the code of a token: +1 or -1. */
static bool is_negative(uint32_t token, uint32_t i)
{
    uint64_t x = ((uint64_t)token << 8 | i) + 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) & 1;
}

/* Returns the token before `token`, or `token` itself if there is none. */
static uint32_t before(const struct model *m, uint32_t token)
{
    uint32_t last = ID_TEXT + m->pieces.n - 1;

    if (token == ID_TEXT)
        return ID_BYTES + '\n';
    if (token > ID_TEXT)
        return token - 1;
    return token == ID_CLOSE && !m->t->is_endless ? last : UINT32_MAX;
}

static void put_row(FILE *f, uint32_t token)
{
    for (uint32_t i = 0; i < WIDTH; i++) {
        uint16_t value = token == UINT32_MAX ? 0 : is_negative(token, i) ? 0xbf80 : 0x3f80;

        fwrite(&value, sizeof value, 1, f);
    }
}

/* If the text is endless, the first piece follows two tokens: half of each code. */
static void put_first_row(FILE *f, uint32_t one, uint32_t other)
{
    for (uint32_t i = 0; i < WIDTH; i++) {
        bool a = is_negative(one, i), b = is_negative(other, i);
        uint16_t value = a != b ? 0 : a ? 0xbf80 : 0x3f80;

        fwrite(&value, sizeof value, 1, f);
    }
}

static void put_tensor(FILE *f, const struct model *m, const struct tensor *x)
{
    if (strcmp(x->name, "token_embd.weight") == 0) {
        for (uint32_t i = 0; i < x->dim[1]; i++)
            put_row(f, i);
    } else if (strcmp(x->name, "output.weight") == 0) {
        for (uint32_t i = 0; i < x->dim[1]; i++)
            if (i == ID_TEXT && m->t->is_endless)
                put_first_row(f, before(m, i), (uint32_t)x->dim[1] - 1);
            else
                put_row(f, before(m, i));
    } else if (x->type == F_NORM) {
        float one = 1;

        for (uint64_t i = 0; i < x->dim[0]; i++)
            fwrite(&one, sizeof one, 1, f);
    } /* the other tensors are zeros: a hole in the file */
}

static const char chatml[] =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

static void put_header(FILE *f, const struct model *m)
{
    uint32_t n_vocab = ID_TEXT + m->pieces.n;

    fwrite("GGUF", 1, 4, f);
    put_u32(f, 3);
    put_u64(f, m->n_tensor);
    put_u64(f, 18); /* number of keys */
    key_string(f, "general.architecture", "llama");
    key_string(f, "general.name", "Talker");
    key_u32(f, "general.alignment", ALIGN);
    key_u32(f, "llama.block_count", m->t->n_layer);
    key_u32(f, "llama.context_length", 1u << 20);
    key_u32(f, "llama.embedding_length", WIDTH);
    key_u32(f, "llama.feed_forward_length", m->t->n_ff);
    key_u32(f, "llama.attention.head_count", HEADS);
    key_f32(f, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    key_u32(f, "llama.vocab_size", n_vocab);
    key_string(f, "tokenizer.ggml.model", "llama");
    put_vocabulary(f, &m->pieces); /* three keys */
    key_u32(f, "tokenizer.ggml.bos_token_id", ID_BEGIN);
    key_u32(f, "tokenizer.ggml.eos_token_id", ID_CLOSE);
    key_bool(f, "tokenizer.ggml.add_space_prefix", false);
    key_string(f, "tokenizer.chat_template", m->t->template != NULL ? m->t->template : chatml);
    for (uint64_t i = 0; i < m->n_tensor; i++) {
        const struct tensor *x = &m->tensor[i];

        put_string(f, x->name);
        put_u32(f, x->dim[1] == 0 ? 1 : 2);
        put_u64(f, x->dim[0]);
        if (x->dim[1] != 0)
            put_u64(f, x->dim[1]);
        put_u32(f, x->type);
        put_u64(f, x->offset);
    }
}

int talker_write(const char *path, const struct talker *t)
{
    struct model *m = calloc(1, sizeof *m);
    FILE *f = fopen(path, "wb");
    int rc = -1;
    long start;

    if (m != NULL && f != NULL && cut(&m->pieces, t->text) == 0) {
        m->t = t;
        m->tensor = calloc(3 + 9 * (size_t)t->n_layer, sizeof *m->tensor);
        add_all(m);
        put_header(f, m);
        while (ftell(f) % ALIGN != 0)
            fputc(0, f);
        start = ftell(f);
        for (uint64_t i = 0; i < m->n_tensor; i++) {
            fseek(f, start + (long)m->tensor[i].offset, SEEK_SET);
            put_tensor(f, m, &m->tensor[i]);
        }
        rc = fflush(f) != 0 || ftruncate(fileno(f), start + (long)m->end) != 0 ? -1 : 0;
        free(m->tensor);
    }
    if (f != NULL && fclose(f) != 0)
        rc = -1;
    if (rc != 0)
        fprintf(stderr, "talker: could not write %s\n", path);
    free(m);
    return rc;
}
